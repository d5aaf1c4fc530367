//! An array is dropped, which is collective, by the thread that allocated it.

fn main() {
    let shmem = shmem::init_shared().unwrap();
    let array = shmem.array::<u64>(1);
    std::thread::scope(|threads| {
        threads.spawn(move || drop(array)); //~ E0277
    });
}
