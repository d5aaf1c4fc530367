//! There are no atomics of two bytes.

use shmem::Atomic;

fn main() {
    let shmem = shmem::init();
    shmem.array::<Atomic<u16>>(1); //~ E0277: `Atomic<u16>` is not a type of elements of symmetric memory //~ E0277: there are no atomic operations on elements of type `u16`
}
