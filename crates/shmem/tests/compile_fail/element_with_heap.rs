//! Symmetric memory holds plain data.

fn main() {
    let shmem = shmem::init();
    shmem.array::<Vec<u64>>(1); //~ E0277
}
