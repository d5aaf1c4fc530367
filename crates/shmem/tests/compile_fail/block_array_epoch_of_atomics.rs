//! The elements of an epoch are plain data.

use shmem::Atomic;

fn main() {
    let shmem = shmem::init();
    let mut counts = shmem.world().block_array::<Atomic<u64>>(100);
    counts.epoch(|_| ()); //~ E0277: elements of type `Atomic<u64>` are not loaded, stored or lent as plain data
}
