//! Symmetric memory holds plain data.

fn main() {
    let shmem = shmem::init();
    shmem.array::<Vec<u64>>(1); //~ E0277: `Vec<u64>` is not a type of elements of symmetric memory
}
