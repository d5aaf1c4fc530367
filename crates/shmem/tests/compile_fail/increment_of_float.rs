//! There is no atomic increment of floating-point numbers.

use shmem::Atomic;

fn main() {
    let shmem = shmem::init();
    let one = shmem.zeroed::<Atomic<f64>>();
    shmem.inc(&one, 0); //~ E0277: this atomic operation does not exist on elements of type `f64`
}
