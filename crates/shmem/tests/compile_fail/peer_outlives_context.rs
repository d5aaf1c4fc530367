//! A peer does not outlive its context.

fn main() {
    let shmem = shmem::init();
    let array = shmem.array::<u64>(1);
    let world = shmem.world();
    let peer = {
        let context = world.context();
        context.pe(0) //~ E0597
    };
    array[0].on(peer).write(1);
}
