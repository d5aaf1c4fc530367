//! A get needs exclusive access to its buffer.

fn main() {
    let shmem = shmem::init();
    let array = shmem.array::<u64>(1);
    let buffer = vec![0u64];
    //~| the destination is `&mut`
    array.on(shmem.pe(0)).get(&buffer); //~ E0277: elements of type `u64` cannot be copied to `&Vec<u64>`
}
