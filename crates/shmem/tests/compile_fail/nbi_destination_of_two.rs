//! A non-blocking operation needs exclusive access to its destination.

use shmem::Atomic;

fn main() {
    let shmem = shmem::init();
    let counter = shmem.zeroed::<Atomic<u64>>();
    let mut fetched = 0;
    shmem.scope(|s| {
        s.fetch_inc_nbi(&mut fetched, &counter, 0);
        s.fetch_inc_nbi(&mut fetched, &counter, 0); //~ E0499
    });
}
