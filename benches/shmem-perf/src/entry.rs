//! The entry from C: the function that its `main` calls.
//!
//! It is apart from the other unsafe code, because it starts what uses that.
#![allow(unsafe_code)]

use std::ffi::{CStr, c_char, c_int};

use crate::library::{RawRoutines, Routines};

/// Returns the program: C's `main` calls it with its arguments and the library.
///
/// # Safety
/// The arguments are those of `main`, and `library` points to a `struct perf_library`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shmem_perf_main(
    argc: c_int,
    argv: *const *const c_char,
    library: *const RawRoutines,
) -> c_int {
    let argument = |index: usize| {
        // SAFETY: there are `argc` arguments.
        let at = unsafe { argv.add(index) };
        // SAFETY: `at` points to one of the `argc` arguments.
        let text = unsafe { *at };
        // SAFETY: each is a string.
        unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
    };
    let arguments: Vec<String> = (0..argc.unsigned_abs() as usize).map(argument).collect();
    // SAFETY: the caller passes one, which lives as long as the program.
    let library = unsafe { &*library };
    crate::run::main(&arguments, Routines::new(library)).into()
}
