//! A shared library in Rust for a program that does not call OpenSHMEM itself (c/loads.c): memory
//! that the library allocates is symmetric, but its static variables are not.
#![allow(unsafe_code)]

use core::ffi::c_int;
use shmem::{Shmem, Sum};

shmem::symmetric! {
    static OF_LIBRARY: u64;
}

/// Uses the memory of a job, and also a static variable if that is requested.
// SAFETY: no other function has this name.
#[unsafe(no_mangle)]
pub extern "C" fn run_in_library(with_static: c_int) {
    let shmem = shmem::init();
    ring(&shmem);
    if with_static != 0 {
        OF_LIBRARY.get(&shmem).store(1);
    }
}

fn ring(shmem: &Shmem) {
    let me = shmem.my_pe() as u64;
    let n = shmem.n_pes() as u64;
    let mut inbox = shmem.array::<u64>(3);
    inbox.on(shmem.next()).put(&[me; 3]);
    let sum = inbox.epoch(|own| own.iter().sum::<u64>());
    assert_eq!(sum, 3 * ((me + n - 1) % n));
    assert_eq!(shmem.world().all_reduce(sum, Sum), 3 * n * (n - 1) / 2);
    if me == 0 {
        println!("n_pes {n}\nPASS");
    }
}
