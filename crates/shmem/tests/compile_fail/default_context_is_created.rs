//! There is one default context.

use shmem::DefaultContext;

fn main() {
    let shmem = shmem::init();
    shmem.world().context::<DefaultContext>(); //~ E0277
}
