//! A context does not outlive its team.

use shmem::Shared;

fn main() {
    let shmem = shmem::init();
    let context = {
        let team = shmem.world().split(Some(0), 0).unwrap().unwrap();
        team.context::<Shared>() //~ E0597
    };
    context.quiet();
}
