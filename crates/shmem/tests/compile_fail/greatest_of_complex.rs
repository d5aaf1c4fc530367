//! Complex numbers have no order.

use shmem::{Complex, Max};

fn main() {
    let shmem = shmem::init();
    let array = shmem.array::<Complex<f32>>(1);
    shmem.world().reduce(Max, &array, &array); //~ E0277
}
