//! The destination of a non-blocking get is read after the scope.

fn main() {
    let shmem = shmem::init();
    let array = shmem.array::<u64>(1);
    let mut dest = vec![0];
    shmem.scope(|s| {
        array.on(s.pe(0)).get(&mut dest);
        assert_eq!(dest[0], 1); //~ E0502
    });
}
