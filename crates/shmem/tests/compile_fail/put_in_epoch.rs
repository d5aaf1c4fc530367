//! Nothing is put to an array in its epoch.

fn main() {
    let shmem = shmem::init();
    let mut array = shmem.array::<u64>(8);
    array.epoch(|own| shmem.put(&array, &*own, 0)); //~ E0502
}
