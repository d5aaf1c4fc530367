//! A view of a static variable does not outlive the handle.

shmem::symmetric! {
    static COUNT: u64;
}

fn main() {
    let shmem = shmem::init();
    let count = COUNT.get(&shmem);
    drop(shmem); //~ E0505
    count.load();
}
