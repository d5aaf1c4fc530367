//! Only the thread that initialised the library at Single calls it.

fn main() {
    let shmem = shmem::init();
    std::thread::scope(|threads| {
        threads.spawn(|| shmem.quiet()); //~ E0277
    });
}
