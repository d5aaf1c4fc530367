//! Only the thread that initialized the library calls it, also if others exist.

use shmem::Init;

fn main() {
    let shmem = Init::new().funneled().start().expect("it is the first");
    std::thread::scope(|threads| {
        threads.spawn(|| shmem.barrier_all()); //~ E0277: what is `Local` stays on the thread that has it, and so does all that borrows it
    });
}
