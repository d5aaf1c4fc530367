//! A lock is not freed while it is held.

use shmem::Lock;

fn main() {
    let shmem = shmem::init();
    let lock = shmem.zeroed::<Lock>();
    let guard = shmem.lock(&lock);
    drop(lock); //~ E0505
    drop(guard);
}
