//! Only the thread that initialized the library for itself uses its teams.

fn main() {
    let shmem = shmem::init();
    let world = shmem.world();
    std::thread::scope(|threads| {
        threads.spawn(|| world.sync()); //~ E0277: what is `Local` stays on the thread that has it, and so does all that borrows it
    });
}
