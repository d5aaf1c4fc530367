//! Atomic operations access atomics alone.

fn main() {
    let shmem = shmem::init();
    let array = shmem.array::<u64>(1);
    shmem.add(array.at(0), 1u64, 0); //~ E0277: `SymRef<'_, u64>` is not a symmetric element of type `Atomic<_>`
    let plain = shmem.boxed(1u64);
    shmem.fetch_add(&plain, 1, 0); //~ E0277: `&SymBox<'_, u64>` is not a symmetric element of type `Atomic<_>`
}
