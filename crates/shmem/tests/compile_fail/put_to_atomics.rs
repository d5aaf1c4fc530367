//! Atomics are not put.

use shmem::Atomic;

fn main() {
    let shmem = shmem::init();
    let array = shmem.array::<Atomic<u64>>(1);
    //~| an `Atomic` has `store`
    array.on(shmem.pe(0)).put(&[1u64]); //~ E0277: elements of type `Atomic<u64>` are not loaded, stored or lent as plain data //~ E0277: elements of type `Atomic<u64>` cannot be copied from `&[u64; 1]`
}
