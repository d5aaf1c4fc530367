//! Not every byte is a bool.

fn main() {
    let shmem = shmem::init();
    shmem.array::<bool>(1); //~ E0277: `bool` is not a type of elements of symmetric memory
}
