//! Padding has no value.

#[derive(Clone, Copy)]
#[repr(C)]
struct Padded {
    number: u64,
    flag: u8,
}

fn main() {
    let shmem = shmem::init();
    shmem.array::<Padded>(1); //~ E0277: `Padded` is not a type of elements of symmetric memory
}
