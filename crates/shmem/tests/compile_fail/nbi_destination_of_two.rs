//! A non-blocking operation needs exclusive access to its destination.

use shmem::Atomic;

fn main() {
    let shmem = shmem::init();
    let counter = shmem.zeroed::<Atomic<u64>>();
    let mut fetched = 0;
    shmem.scope(|s| {
        counter.on(s.pe(0)).fetch_add_into(1, &mut fetched);
        counter.on(s.pe(0)).fetch_add_into(1, &mut fetched); //~ E0499
    });
}
