//! Only atomics are fetched.

fn main() {
    let shmem = shmem::init();
    let array = shmem.array::<u64>(1);
    shmem.fetch_all(&mut [0u64], &array, 0); //~ E0277: `&SymArray<'_, u64>` is not a view of symmetric elements of type `Atomic<u64>`
}
