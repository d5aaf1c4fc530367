//! Registered memory is symmetric until the closure returns, and no longer.

fn main() {
    let shmem = shmem::init();
    let mut memory = vec![0u64; 100];
    let elements = shmem.with_registered(&mut memory, |elements| elements); //~ lifetime may not live long enough
    let mut kept = None;
    let done = shmem.with_registered(&mut memory, |elements| kept = Some(elements)); //~ E0521
    drop((elements, done, kept));
}
