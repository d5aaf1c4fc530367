//! The source of a non-blocking put lives until the scope ends.

fn main() {
    let shmem = shmem::init();
    let array = shmem.array::<u64>(1);
    shmem.scope(|s| {
        let source = vec![1];
        array.on(s.pe(0)).put(&source); //~ E0597
    });
}
