//! There is no bitwise and of floating-point numbers.

use shmem::Atomic;

fn main() {
    let shmem = shmem::init();
    let one = shmem.zeroed::<Atomic<f64>>();
    one.on(shmem.pe(0)).and(1.0); //~ E0277: this atomic operation does not exist on elements of type `f64`
}
