//! Padding has no value.

#[derive(Clone, Copy, shmem::Element)] //~ E0080
#[repr(C)]
struct Padded {
    number: u64,
    flag: u8,
}

#[derive(Clone, Copy)]
#[repr(C)]
struct Underived {
    number: u64,
    flag: u8,
}

fn main() {
    let shmem = shmem::init();
    //~| for a structure of such fields: #[derive(Clone, Copy, shmem::Element)]
    shmem.array::<Underived>(1); //~ E0277: `Underived` is not a type of elements of symmetric memory
}
