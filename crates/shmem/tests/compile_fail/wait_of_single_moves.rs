//! A wait as a future stays on the thread that may call.

use shmem::Cmp;

fn main() {
    let shmem = shmem::init();
    let flag = shmem.zeroed::<u64>();
    let wait = shmem.until(&flag, Cmp::Ne, 0);
    std::thread::scope(|threads| {
        threads.spawn(move || shmem::block_on(wait)); //~ E0277: a handle of the level `Single`, and what borrows it, stays on the thread that initialized the library
    });
}
