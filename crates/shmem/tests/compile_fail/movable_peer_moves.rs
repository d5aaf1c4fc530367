//! A peer of a movable context is borrowed from it, and stays on its thread.

use shmem::{ContextOptions, Movable};

fn main() {
    let shmem = shmem::init_shared().unwrap();
    let array = shmem.array::<u64>(1);
    let world = shmem.world();
    let context = ContextOptions::new().create_as::<Movable>(&world).unwrap();
    let peer = context.pe(0);
    let array = &array;
    std::thread::scope(|threads| {
        threads.spawn(move || array[0].on(peer).write(1)); //~ E0277: what is `Movable` stays on the thread that has it, and so does all that borrows it
        array[0].on(peer).write(2);
    });
}
