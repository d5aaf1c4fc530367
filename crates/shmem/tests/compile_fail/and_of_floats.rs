//! There is no bitwise and of floating-point numbers.

use shmem::And;

fn main() {
    let shmem = shmem::init();
    shmem.world().reduce_value(And, 1.0f64); //~ E0277
}
