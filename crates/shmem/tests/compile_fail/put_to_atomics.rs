//! Atomics are not put.

use shmem::Atomic;

fn main() {
    let shmem = shmem::init();
    let array = shmem.array::<Atomic<u64>>(1);
    shmem.put(&array, &[1u64], 0); //~ E0277
}
