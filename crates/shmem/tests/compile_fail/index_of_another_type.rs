//! Indices are `usize`, as those of slices.

fn main() {
    let shmem = shmem::init();
    let array = shmem.array::<u64>(8);
    array[3i32].load(); //~ E0277: symmetric elements are not indexed by `i32`
    array.get(..3u32); //~ E0277
}
