//! Threads share no context of a library that one thread alone calls.

use shmem::{ContextOptions, Shared};

fn main() {
    let shmem = shmem::init();
    let world = shmem.world();
    //~| `shmem::init_shared()?` returns a handle for all threads
    let _ = ContextOptions::new().create_as::<Shared>(&world); //~ E0277: a context of the kind `Shared` cannot be created where the threads `Local` call the library
}
