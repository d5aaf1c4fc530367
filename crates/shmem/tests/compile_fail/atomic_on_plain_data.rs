//! Atomic operations access atomics alone.

fn main() {
    let shmem = shmem::init();
    let array = shmem.array::<u64>(1);
    //~| the method was found for
    array[0].on(shmem.pe(0)).fetch_add(1); //~ E0599
}
