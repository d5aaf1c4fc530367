//! A program in Rust that calls a function in C, which is in the same job and reaches the same
//! memory.
#![allow(unsafe_code)]

use core::ffi::c_long;

unsafe extern "C" {
    /// Returns the sum of `mine` over all PEs, and puts the number of this PE to `inbox` of the
    /// next PE.
    fn sum_in_c(mine: c_long, inbox: *mut c_long) -> c_long;
}

fn main() {
    let shmem = shmem::init();
    let me = shmem.my_pe() as i64;
    let n = shmem.n_pes() as i64;
    let inbox = shmem.zeroed::<i64>();
    // SAFETY: the declaration matches c/in_c.c. The pointer is to a symmetric word that no epoch
    // has borrowed.
    let sum = unsafe { sum_in_c(me + 1, inbox.as_ptr()) };
    shmem.barrier_all();
    assert_eq!(sum, n * (n + 1) / 2);
    assert_eq!(inbox.load(), (me + n - 1) % n);
    if me == 0 {
        println!("n_pes {n}\nPASS");
    }
}
