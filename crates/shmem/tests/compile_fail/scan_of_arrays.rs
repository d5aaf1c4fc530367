//! Arrays as elements cannot be added up.

fn main() {
    let shmem = shmem::init();
    let array = shmem.array::<[u64; 2]>(1);
    shmem.world().inscan(&array, &array); //~ E0277
}
