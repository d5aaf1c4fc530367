//! A reference means nothing to other PEs.

#[derive(Clone, Copy, shmem::Element)]
#[repr(C)]
struct Named {
    //~| fields are numbers, arrays of numbers
    name: &'static u8, //~ E0277: a field of type `&'static u8` cannot be in an element of symmetric memory
}

fn main() {
    let shmem = shmem::init();
    shmem.array::<Named>(1);
}
