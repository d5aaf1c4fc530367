//! A view does not outlive its object.

fn main() {
    let shmem = shmem::init();
    let array = shmem.array::<u64>(8);
    let view = array.slice(..4);
    drop(array); //~ E0505
    view.load(0);
}
