//! The level is part of the type.

use shmem::{Multiple, Team};

fn main() {
    let shmem = shmem::init();
    let _world: Team<'_, Multiple> = shmem.world(); //~ E0308
}
