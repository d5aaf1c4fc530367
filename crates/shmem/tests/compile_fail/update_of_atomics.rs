//! What several PEs change is not updated by a load and a store.

use shmem::Atomic;

fn main() {
    let shmem = shmem::init();
    let one = shmem.zeroed::<Atomic<u64>>();
    one.update(|n| n + 1); //~ E0599
    one.swap(&one); //~ E0599
}
