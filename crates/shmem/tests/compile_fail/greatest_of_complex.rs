//! Complex numbers have no order.

use shmem::{Complex, Max};

fn main() {
    let shmem = shmem::init();
    let array = shmem.array::<Complex<f32>>(1);
    shmem.world().all_reduce_into(&array, &array, Max); //~ E0277: `Max` does not combine elements of type `Complex<f32>`
}
