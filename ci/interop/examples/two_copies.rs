//! A program with two copies of the library, like a Rust program that uses a C library which is
//! linked with librushmem.so. The copy that is initialized second ends the job with a message.
//!
//! two_copies LIBRUSHMEM
#![allow(unsafe_code)]

fn main() {
    let path = std::env::args()
        .nth(1)
        .expect("usage: two_copies LIBRUSHMEM");
    // SAFETY: the initialization functions of librushmem.so may run at any time.
    let other = unsafe { libloading::Library::new(path) }.expect("it can be loaded");
    let _shmem = shmem::init();
    // SAFETY: shmem_init has this type.
    let init = unsafe { other.get::<unsafe extern "C" fn()>(b"shmem_init") }.expect("it is there");
    // SAFETY: shmem_init has no preconditions.
    unsafe { init() };
}
