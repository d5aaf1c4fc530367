//! A signal is updated by signal operations.

use shmem::Signal;

fn main() {
    let shmem = shmem::init();
    let signal = shmem.zeroed::<Signal>();
    //~| a `Signal` has `set` and `add`
    signal.on(shmem.pe(0)).write(1u64); //~ E0277: elements of type `Signal` are not loaded, stored or lent as plain data //~ E0308
}
