//! The source of a non-blocking put stays as it is until the scope ends.

fn main() {
    let shmem = shmem::init();
    let array = shmem.array::<u64>(1);
    let mut source = vec![1];
    shmem.scope(|s| {
        array.on(s.pe(0)).put(&source);
        source.push(2); //~ E0502
    });
}
