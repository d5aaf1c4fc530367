//! A signal is updated by signal operations.

use shmem::Signal;

fn main() {
    let shmem = shmem::init();
    let signal = shmem.zeroed::<Signal>();
    shmem.put(&signal, &[1u64], 0); //~ E0277
}
