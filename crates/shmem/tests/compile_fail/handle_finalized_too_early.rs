//! An array cannot be used after its library was finalized.

fn main() {
    let shmem = shmem::init();
    let array = shmem.array::<u64>(1);
    drop(shmem); //~ E0505
    array.to_vec();
}
