//! Nothing is issued in a scope that has ended.

fn main() {
    let shmem = shmem::init();
    let scope = shmem.scope(|s| s); //~ lifetime may not live long enough
    drop(scope);
}
