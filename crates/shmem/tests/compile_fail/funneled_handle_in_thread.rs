//! Only the thread that initialized the library calls it at `Funneled`.

use shmem::Funneled;

fn main() {
    let shmem = shmem::init_thread::<Funneled>().expect("it is the first");
    std::thread::scope(|threads| {
        threads.spawn(|| shmem.barrier_all()); //~ E0277: a handle of the level `Funneled`, and what borrows it, stays on the thread that initialized the library
    });
}
