//! A handle at Single does not move to another thread.

fn main() {
    let shmem = shmem::init();
    std::thread::spawn(move || drop(shmem)); //~ E0277: a handle of the level `Single`, and what borrows it, stays on the thread that initialized the library
}
