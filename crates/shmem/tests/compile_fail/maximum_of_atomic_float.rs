//! What needs a compare-and-swap exists for integers.

use shmem::Atomic;

fn main() {
    let shmem = shmem::init();
    let one = shmem.zeroed::<Atomic<f64>>();
    one.on(shmem.pe(0)).fetch_sub(1.0);
    one.on(shmem.pe(0)).fetch_max(1.0); //~ E0277: this atomic operation does not exist on elements of type `f64`
}
