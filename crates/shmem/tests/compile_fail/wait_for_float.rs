//! A PE waits for integers.

use shmem::Cmp;

fn main() {
    let shmem = shmem::init();
    let array = shmem.array::<f64>(1);
    shmem.wait_until(array.at(0), Cmp::Gt, 0.0); //~ E0277: a PE cannot wait for elements of type `f64`
}
