//! A local context is used by the thread that created it.

fn main() {
    let shmem = shmem::init_shared().unwrap();
    let world = shmem.world();
    let context = world.context();
    std::thread::scope(|threads| {
        threads.spawn(|| context.quiet()); //~ E0277: what is `Local` stays on the thread that has it, and so does all that borrows it
    });
}
