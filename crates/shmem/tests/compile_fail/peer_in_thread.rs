//! Only the thread that initialized the library for itself uses its peers.

fn main() {
    let shmem = shmem::init();
    let array = shmem.array::<u64>(1);
    let peer = shmem.pe(0);
    let first = &array[0];
    std::thread::scope(|threads| {
        threads.spawn(move || first.on(peer).write(1)); //~ E0277: what is `Local` stays on the thread that has it, and so does all that borrows it
    });
}
