//! A private context is used by the thread that created it.

use shmem::{Multiple, Private};

fn main() {
    let shmem = shmem::init_thread::<Multiple>().unwrap();
    let world = shmem.world();
    let context = world.context::<Private>();
    std::thread::scope(|threads| {
        threads.spawn(|| context.quiet()); //~ E0277
    });
}
