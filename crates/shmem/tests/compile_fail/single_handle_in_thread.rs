//! Only the thread that initialized the library at Single calls it.

fn main() {
    let shmem = shmem::init();
    std::thread::scope(|threads| {
        threads.spawn(|| shmem.quiet()); //~ E0277: a handle of the level `Single`, and what borrows it, stays on the thread that initialized the library
    });
}
