//! A distributed array is not iterated: most elements are of other PEs. Its `own` ones are.

fn main() {
    let shmem = shmem::init();
    let array = shmem.world().block_array::<u64>(100);
    for element in array.own() {
        element.store(1);
    }
    for element in &array {} //~ E0277
}
