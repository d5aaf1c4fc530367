//! Both sides of a put have the same type.

fn main() {
    let shmem = shmem::init();
    let array = shmem.array::<u64>(1);
    shmem.put(&array, &[1u32], 0); //~ E0277
}
