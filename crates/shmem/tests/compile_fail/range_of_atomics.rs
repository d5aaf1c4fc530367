//! Ranges of a distributed array of atomic elements are not transferred as plain data.

use shmem::Atomic;

fn main() {
    let shmem = shmem::init();
    let counts = shmem.world().block_array::<Atomic<u64>>(100);
    counts.add_each([(3, 1), (99, 2)]);
    counts.read(3..5); //~ E0277: elements of type `Atomic<u64>` are not loaded, stored or lent as plain data
}
