//! An array does not outlive the handle.

fn main() {
    let array = {
        let shmem = shmem::init();
        shmem.array::<u64>(1) //~ E0597
    };
    array.to_vec();
}
