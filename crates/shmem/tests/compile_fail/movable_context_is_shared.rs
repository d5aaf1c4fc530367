//! One thread at a time uses a movable context.

use shmem::{ContextOptions, Movable};

fn main() {
    let shmem = shmem::init_shared().unwrap();
    let world = shmem.world();
    let context = ContextOptions::new().create_as::<Movable>(&world).unwrap();
    std::thread::scope(|threads| {
        threads.spawn(|| context.quiet()); //~ E0277: what is `Movable` stays on the thread that has it, and so does all that borrows it
        context.quiet();
    });
}
