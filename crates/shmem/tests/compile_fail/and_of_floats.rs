//! There is no bitwise and of floating-point numbers.

use shmem::And;

fn main() {
    let shmem = shmem::init();
    shmem.world().all_reduce(1.0f64, And); //~ E0277: `And` does not combine elements of type `f64`
}
