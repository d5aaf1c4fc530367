//! A lock is released by the thread that took it.

use shmem::Lock;

fn main() {
    let shmem = shmem::init_shared().unwrap();
    let lock = shmem.zeroed::<Lock>();
    let guard = shmem.lock(&lock);
    std::thread::scope(|threads| {
        threads.spawn(move || drop(guard)); //~ E0277
    });
}
