//! An array lives until operations on it are complete.

fn main() {
    let shmem = shmem::init();
    let array = shmem.array::<u64>(1);
    shmem.scope(|s| {
        s.put_nbi(&array, &[1], 0); //~ E0597
        drop(array); //~ E0505
    });
}
