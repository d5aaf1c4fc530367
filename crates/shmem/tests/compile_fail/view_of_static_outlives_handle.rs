//! A view of a static variable does not outlive the handle.

use shmem::SymStatic;
static COUNT: SymStatic<u64> = SymStatic::new(0);

fn main() {
    let shmem = shmem::init();
    let count = COUNT.element(&shmem);
    drop(shmem); //~ E0505
    count.load();
}
