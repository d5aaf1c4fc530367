//! Only the thread that initialized the library for itself calls it.

fn main() {
    let shmem = shmem::init();
    std::thread::scope(|threads| {
        //~| `shmem::init_shared()?`, instead of `init` or `launch`, returns a handle that threads
        threads.spawn(|| shmem.quiet()); //~ E0277: what is `Local` stays on the thread that has it, and so does all that borrows it
    });
}
