//! Scans add up, and have no other operator.

fn main() {
    let shmem = shmem::init();
    shmem.world().exscan_value(shmem::Max, 1); //~ E0308
}
