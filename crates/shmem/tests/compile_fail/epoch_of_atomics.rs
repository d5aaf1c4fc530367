//! Atomics are changed by atomic operations alone, also in an epoch.

use shmem::Atomic;

fn main() {
    let shmem = shmem::init();
    let mut array = shmem.array::<Atomic<u64>>(8);
    array.epoch(|_| ()); //~ E0277: elements of type `Atomic<u64>` are not loaded, stored or lent as plain data
}
