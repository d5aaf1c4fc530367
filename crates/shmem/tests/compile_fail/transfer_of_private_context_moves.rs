//! A transfer on a private context stays on its thread.

use shmem::{Multiple, Private};

fn main() {
    let shmem = shmem::init_thread::<Multiple>().unwrap();
    let array = shmem.array::<u64>(1);
    let world = shmem.world();
    let context = world.context::<Private>();
    let transfer = context.put_owned(&array, vec![1], 0);
    std::thread::scope(|threads| {
        threads.spawn(move || shmem::block_on(transfer)); //~ E0277
    });
}
