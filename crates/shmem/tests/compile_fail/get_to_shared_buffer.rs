//! A get needs exclusive access to its buffer.

fn main() {
    let shmem = shmem::init();
    let array = shmem.array::<u64>(1);
    let buffer = vec![0u64];
    shmem.get(&buffer, &array, 0); //~ E0277
}
