//! A wait as a future stays on the thread that may call.

fn main() {
    let shmem = shmem::init();
    let flag = shmem.zeroed::<u64>();
    let wait = shmem.until(flag.ne(0));
    std::thread::scope(|threads| {
        threads.spawn(move || shmem::block_on(wait)); //~ E0277: what is `Local` stays on the thread that has it, and so does all that borrows it
    });
}
