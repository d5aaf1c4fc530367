//! One thread at a time uses a serialized context.

use shmem::{Multiple, Serialized};

fn main() {
    let shmem = shmem::init_thread::<Multiple>().unwrap();
    let world = shmem.world();
    let context = world.context::<Serialized>();
    std::thread::scope(|threads| {
        threads.spawn(|| context.quiet()); //~ E0277
        context.quiet();
    });
}
