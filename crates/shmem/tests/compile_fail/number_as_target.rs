//! A number becomes a peer by who numbers PEs so.

fn main() {
    let shmem = shmem::init();
    let array = shmem.array::<u64>(2);
    //~| a number of a PE becomes a peer by `shmem.pe(number)`
    let _ = array.on(3); //~ E0277: `{integer}` is not the target of an operation
}
