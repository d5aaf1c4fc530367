//! A transfer does not outlive its context.

fn main() {
    let shmem = shmem::init();
    let array = shmem.array::<u64>(1);
    let world = shmem.world();
    let transfer = {
        let context = world.context();
        array.on(context.pe(0)).put_owned(vec![1]) //~ E0597
    };
    shmem::block_on(transfer);
}
