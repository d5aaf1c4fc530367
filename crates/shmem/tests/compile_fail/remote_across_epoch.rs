//! Nothing is stored across an epoch by which its elements could be reached.

fn main() {
    let shmem = shmem::init();
    let mut array = shmem.array::<u64>(2);
    let there = array.on(shmem.pe(0));
    array.epoch(|own| own.fill(1)); //~ E0502
    there.put(&[1, 2]);
}
