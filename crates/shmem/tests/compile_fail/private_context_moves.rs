//! A private context is destroyed by the thread that created it.

use shmem::{Multiple, Private};

fn main() {
    let shmem = shmem::init_thread::<Multiple>().unwrap();
    let world = shmem.world();
    let context = world.context::<Private>();
    std::thread::scope(|threads| {
        threads.spawn(move || drop(context)); //~ E0277
    });
}
