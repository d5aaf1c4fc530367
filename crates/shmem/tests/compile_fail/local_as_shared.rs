//! Which threads call is part of the type.

use shmem::{Shared, Team};

fn main() {
    let shmem = shmem::init();
    let _world: Team<'_, Shared> = shmem.world(); //~ E0308
}
