//! Nor do others use its teams.

fn main() {
    let shmem = shmem::init();
    let world = shmem.world();
    std::thread::scope(|threads| {
        threads.spawn(|| world.sync()); //~ E0277
    });
}
