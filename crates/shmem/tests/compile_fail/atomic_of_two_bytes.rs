//! There are no atomics of two bytes.

use shmem::Atomic;

fn main() {
    let shmem = shmem::init();
    shmem.array::<Atomic<u16>>(1); //~ E0277
}
