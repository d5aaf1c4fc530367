//! The entry point of the Rust half: the function that `main` of the C half calls.
//!
//! It is not in `library`, because it starts `run`, which uses `library`.
#![allow(unsafe_code)]

use std::ffi::{CStr, c_char, c_int};

use crate::library::{RawRoutines, Routines};

/// Runs the program and returns its exit status.
///
/// # Safety
/// `argc` and `argv` are the arguments of `main`, and `library` points to a `struct perf_library`
/// that stays valid until this returns.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shmem_perf_main(
    argc: c_int,
    argv: *const *const c_char,
    library: *const RawRoutines,
) -> c_int {
    let mut arguments = Vec::new();
    for index in 0..argc.unsigned_abs() as usize {
        // SAFETY: `index` is less than `argc`, the number of elements of `argv`.
        let element = unsafe { argv.add(index) };
        // SAFETY: it points to one of the `argc` elements.
        let text = unsafe { *element };
        // SAFETY: each argument of `main` is a string that ends with 0.
        let text = unsafe { CStr::from_ptr(text) };
        arguments.push(text.to_string_lossy().into_owned());
    }

    // SAFETY: the caller passes a pointer that is valid until this returns.
    let library = unsafe { &*library };
    crate::run::main(&arguments, Routines::new(library)).into()
}
