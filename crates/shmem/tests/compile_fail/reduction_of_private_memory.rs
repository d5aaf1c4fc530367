//! Collectives on symmetric memory take nothing else.

use shmem::Sum;

fn main() {
    let shmem = shmem::init();
    let (dest, source) = (shmem.array::<u64>(2), [1, 2]);
    //~| slices and values of this PE alone are combined by `all_reduce`
    shmem.world().reduce(Sum, &dest, &source); //~ E0277: `&[{integer}; 2]` is not a view of symmetric elements of type `u64`
}
