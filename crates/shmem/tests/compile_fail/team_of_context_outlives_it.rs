//! The team of a context is borrowed from it.

fn main() {
    let shmem = shmem::init();
    let world = shmem.world();
    let context = world.context();
    let team = context.team();
    drop(context); //~ E0505
    team.sync();
}
