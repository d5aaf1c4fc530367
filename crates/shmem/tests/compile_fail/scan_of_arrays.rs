//! Arrays as elements cannot be added up.

fn main() {
    let shmem = shmem::init();
    let array = shmem.array::<[u64; 2]>(1);
    shmem.world().inclusive_scan_into(&array, &array, shmem::Sum); //~ E0277: `shmem::Sum` does not combine elements of type `[u64; 2]`
}
