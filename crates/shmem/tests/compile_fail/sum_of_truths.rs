//! Truth values have no sum, and places no operators but two.

use shmem::{MaxLoc, Sum};

fn main() {
    let shmem = shmem::init();
    let world = shmem.world();
    world.all_reduce(true, Sum); //~ E0277: `shmem::Sum` does not combine elements of type `shmem::reduced::Truth`
    world.all_reduce((1u8, 2usize), Sum); //~ E0277: `shmem::Sum` does not combine elements of type `shmem::reduced::At<u8>`
    //~| MaxLoc and MinLoc combine pairs
    world.all_reduce(1.0f64, MaxLoc); //~ E0277: `MaxLoc` does not combine elements of type `f64`
}
