//! Values of which not all bits are values do not come from other PEs.

fn main() {
    let shmem = shmem::init();
    let world = shmem.world();
    world.all_reduce_with(&7, |left, _| left); //~ E0277
    world.all_reduce_with('c', |_, right| right); //~ E0277
    world.all_reduce_with(7, |left, right| left.max(right));
}
