//! Atomics are loaded, but not stored as plain data, which is not atomic towards other updates.

use shmem::Atomic;

fn main() {
    let shmem = shmem::init();
    let array = shmem.array::<Atomic<u64>>(1);
    array[0].load();
    //~| an `Atomic` has `store`
    array[0].store(1); //~ E0308 //~ E0277: elements of type `Atomic<u64>` are not loaded, stored or lent as plain data
    array.fill(array[0].load()); //~ E0308 //~ E0277: elements of type `Atomic<u64>` are not loaded, stored or lent as plain data
}
