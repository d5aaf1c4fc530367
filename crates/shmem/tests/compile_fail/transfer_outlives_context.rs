//! A transfer does not outlive its context.

use shmem::Shared;

fn main() {
    let shmem = shmem::init();
    let array = shmem.array::<u64>(1);
    let world = shmem.world();
    let transfer = {
        let context = world.context::<Shared>();
        context.put_owned(&array, vec![1], 0) //~ E0597
    };
    shmem::block_on(transfer);
}
