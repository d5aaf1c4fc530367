//! A peer of a scope does not leave it.

fn main() {
    let shmem = shmem::init();
    let array = shmem.array::<u64>(2);
    let mut out = None;
    shmem.scope(|s| out = Some(s.pe(0))); //~ E0521
    array.on(out.unwrap()).put(&[1, 2]);
}
