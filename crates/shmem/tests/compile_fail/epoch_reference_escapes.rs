//! A reference into symmetric memory ends with its epoch.

fn main() {
    let shmem = shmem::init();
    let mut array = shmem.array::<u64>(8);
    let own = array.epoch(|own| own); //~ lifetime may not live long enough
    own[0] = 1;
}
