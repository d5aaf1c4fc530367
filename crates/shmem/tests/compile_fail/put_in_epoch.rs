//! Nothing is put to an array in its epoch.

fn main() {
    let shmem = shmem::init();
    let mut array = shmem.array::<u64>(8);
    let peer = shmem.pe(0);
    array.epoch(|own| array.on(peer).put(&*own)); //~ E0502
}
