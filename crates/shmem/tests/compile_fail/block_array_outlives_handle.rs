//! A distributed array does not outlive the handle.

fn main() {
    let array = {
        let shmem = shmem::init();
        shmem.world().block_array::<u64>(1) //~ E0597
    };
    array.own().to_vec();
}
