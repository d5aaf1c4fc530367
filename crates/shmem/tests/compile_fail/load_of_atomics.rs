//! Atomics are not loaded as plain data.

use shmem::Atomic;

fn main() {
    let shmem = shmem::init();
    let array = shmem.array::<Atomic<u64>>(1);
    //~| an `Atomic` has `load`, `store`
    array[0].load(); //~ E0277: elements of type `Atomic<u64>` are not loaded, stored or lent as plain data
}
