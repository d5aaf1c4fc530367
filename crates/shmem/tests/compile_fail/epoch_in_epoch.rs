//! An array is in one epoch at a time.

fn main() {
    let shmem = shmem::init();
    let mut array = shmem.array::<u64>(8);
    array.epoch(|_| array.epoch(|own| own[0] = 1)); //~ E0499
}
