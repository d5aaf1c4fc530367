//! Only the thread that initialized the library at Single uses its teams.

fn main() {
    let shmem = shmem::init();
    let world = shmem.world();
    std::thread::scope(|threads| {
        threads.spawn(|| world.sync()); //~ E0277: a handle of the level `Single`, and what borrows it, stays on the thread that initialized the library
    });
}
