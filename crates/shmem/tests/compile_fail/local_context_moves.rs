//! A local context is destroyed by the thread that created it.

fn main() {
    let shmem = shmem::init_shared().unwrap();
    let world = shmem.world();
    let context = world.context();
    std::thread::scope(|threads| {
        threads.spawn(move || drop(context)); //~ E0277: what is `Local` stays on the thread that made it, and so does all that borrows it
    });
}
