//! An array that has a view keeps its elements.

fn main() {
    let shmem = shmem::init();
    let mut array = shmem.array::<u64>(2);
    let view = &array[1..];
    let _ = array.resize(100); //~ E0502
    view.fill(1);
}
