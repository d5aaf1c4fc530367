//! The default context is the handle's.

use shmem::Context;

fn quiet(context: &'static Context<'static>) {
    context.quiet();
}

fn main() {
    let shmem = shmem::init();
    quiet(&shmem); //~ E0597
}
