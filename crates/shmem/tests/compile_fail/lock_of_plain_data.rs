//! A lock is a type of element.

fn main() {
    let shmem = shmem::init();
    let word = shmem.zeroed::<i64>();
    let _guard = shmem.lock(&word); //~ E0308
}
