//! Collectives on symmetric memory take nothing else.

use shmem::Sum;

fn main() {
    let shmem = shmem::init();
    let dest = shmem.array::<u64>(2);
    let source = [1, 2];
    //~| slices and values of this PE alone are combined by `all_reduce`
    shmem.world().all_reduce_into(&source, &dest, Sum); //~ E0277: `[{integer}; 2]` is not symmetric memory with elements of type `_`
}
