//! The handle of one thread does not move to another one.

fn main() {
    let shmem = shmem::init();
    std::thread::spawn(move || drop(shmem)); //~ E0277: what is `Local` stays on the thread that made it, and so does all that borrows it
}
