//! A view does not outlive its object.

fn main() {
    let shmem = shmem::init();
    let array = shmem.array::<u64>(8);
    let view = &array[..4];
    drop(array); //~ E0505
    view.to_vec();
}
