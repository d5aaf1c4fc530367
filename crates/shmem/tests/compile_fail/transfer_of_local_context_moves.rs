//! A transfer on a local context stays on its thread.

fn main() {
    let shmem = shmem::init_shared().unwrap();
    let array = shmem.array::<u64>(1);
    let world = shmem.world();
    let context = world.context();
    let transfer = array.on(context.pe(0)).put_owned(vec![1]);
    std::thread::scope(|threads| {
        threads.spawn(move || shmem::block_on(transfer)); //~ E0277: what is `Local` stays on the thread that has it, and so does all that borrows it
    });
}
