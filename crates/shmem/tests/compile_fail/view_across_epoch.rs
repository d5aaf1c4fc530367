//! There is no view of an array in its epoch.

fn main() {
    let shmem = shmem::init();
    let mut array = shmem.array::<u64>(8);
    let view = &array[..4];
    array.epoch(|own| own[0] = 1); //~ E0502
    view.to_vec();
}
