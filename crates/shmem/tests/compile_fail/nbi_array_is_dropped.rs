//! An array lives until operations on it are complete.

fn main() {
    let shmem = shmem::init();
    let array = shmem.array::<u64>(1);
    shmem.scope(|s| {
        array.on(s.pe(0)).put(&[1]); //~ E0597
        drop(array); //~ E0505
    });
}
