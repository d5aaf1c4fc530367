//! Nothing accesses the elements of a distributed array in its epoch but what it lends.

fn main() {
    let shmem = shmem::init();
    let mut array = shmem.world().block_array::<u64>(100);
    array.epoch(|own| own[0] = array.at(0).read()); //~ E0502
    let first = array.own();
    array.fill(3); //~ E0502
    first.to_vec();
    let escaped = array.epoch(|own| own); //~ lifetime may not live long enough
}
