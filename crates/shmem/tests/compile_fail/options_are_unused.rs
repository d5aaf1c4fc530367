//! Options that nothing takes, and elements on a peer without an operation, have no effect.

#![deny(unused_must_use)]

use shmem::{ContextOptions, Init, SessionOptions, Strides, TeamOptions};

fn main() {
    Init::new().funneled(); //~ unused_must_use
    TeamOptions::new().contexts(3); //~ unused_must_use
    ContextOptions::new().no_store(); //~ unused_must_use
    SessionOptions::new().batch(); //~ unused_must_use
    Strides::new(3).block(2); //~ unused_must_use

    let shmem = shmem::init();
    let array = shmem.array::<u64>(4);
    array.on(shmem.me()); //~ unused_must_use
    array.chunks(2); //~ unused_must_use
    shmem.peers(); //~ unused_must_use
    shmem.until(array[0].eq(1)); //~ unused_must_use
}
