//! A program with two copies of the library, as if a C library of its own were linked with
//! librushmem.so: the second one that is initialized ends the job with a message.
//!
//!     two_copies LIBRUSHMEM
#![allow(unsafe_code)]

fn main() {
    let path = std::env::args().nth(1).expect("usage: two_copies LIBRUSHMEM");
    // SAFETY: what it does when it is loaded may be done at any time.
    let other = unsafe { libloading::Library::new(path) }.expect("it can be loaded");
    let _shmem = shmem::init();
    // SAFETY: the type of the C function.
    let init = unsafe { other.get::<unsafe extern "C" fn()>(b"shmem_init") }.expect("it is there");
    // SAFETY: it has no conditions.
    unsafe { init() };
}
