//! Only atomics are fetched.

fn main() {
    let shmem = shmem::init();
    let array = shmem.array::<u64>(1);
    array.on(shmem.pe(0)).load_each(); //~ E0599
}
