//! Both sides of a put have the same type.

fn main() {
    let shmem = shmem::init();
    let array = shmem.array::<u64>(1);
    //~| the source is a reference to a slice, array or vector of the same type
    array.on(shmem.pe(0)).put(&[1u32]); //~ E0277: elements of type `u64` cannot be copied from `&[u32; 1]`
}
