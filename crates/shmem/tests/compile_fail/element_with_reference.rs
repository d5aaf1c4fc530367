//! A reference means nothing to other PEs.

fn main() {
    let shmem = shmem::init();
    shmem.array::<&'static u8>(1); //~ E0277: `&'static u8` is not a type of elements of symmetric memory
}
