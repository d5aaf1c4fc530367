//! No reference leads to registered memory, to which other PEs may write.

fn main() {
    let shmem = shmem::init();
    let mut memory = vec![0u64; 100];
    let sum = shmem.with_registered(&mut memory, |_| memory.iter().sum::<u64>()); //~ E0502
    drop(sum);
}
