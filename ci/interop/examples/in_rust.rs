//! A library in Rust for a program in C (c/main.c): both call one copy of the library.
#![allow(unsafe_code)]

use core::ffi::c_long;

/// Returns the sum of `mine` over all PEs.
// SAFETY: no other function has this name.
#[unsafe(no_mangle)]
pub extern "C" fn sum_in_rust(mine: c_long) -> c_long {
    // The library, which the program has initialized already, counts this initialization and the
    // drop of the handle.
    let shmem = shmem::init();
    shmem.world().all_reduce(mine, shmem::Sum)
}
