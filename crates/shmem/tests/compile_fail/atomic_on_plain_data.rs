//! Atomic operations access atomics alone.

fn main() {
    let shmem = shmem::init();
    let array = shmem.array::<u64>(1);
    shmem.add(array.at(0), 1u64, 0); //~ E0277
}
