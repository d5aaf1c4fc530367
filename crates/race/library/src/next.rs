//! Interposition of functions of other libraries. The dynamic linker finds this library's function
//! of the same name first, and that one calls the next, original function.
#![allow(unsafe_code)]

use core::ffi::{CStr, c_void};
use std::sync::OnceLock;

/// Returns the function with this name of the libraries that follow this one in the order of
/// loading. Panics if there is none.
///
/// # Safety
/// `F` is the type of a pointer to that function.
pub unsafe fn next<F: Copy>(name: &CStr) -> F {
    const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
    // SAFETY: the name ends with a null byte.
    let found = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) };
    assert!(
        !found.is_null(),
        "there is no {name:?} behind the race detector"
    );
    // SAFETY: not null, so the function, of which `F` is the type by contract, and of equal size.
    unsafe { std::mem::transmute_copy(&found) }
}

/// Returns the function that `found` has or, the first time, the one with this name that follows.
/// `name` ends with a null byte.
///
/// # Safety
/// As [`next`].
#[inline]
pub unsafe fn next_once<F: Copy>(found: &OnceLock<F>, name: &str) -> F {
    *found.get_or_init(|| {
        let name = CStr::from_bytes_with_nul(name.as_bytes());
        // SAFETY: the caller keeps the contract of `next`.
        unsafe { next(name.expect("the callers append a null byte")) }
    })
}

/// A function of up to 8 arguments, none of which is a floating-point number. A function with fewer
/// arguments ignores the registers and words of the stack of the others.
pub type Next =
    unsafe extern "C" fn(usize, usize, usize, usize, usize, usize, usize, usize) -> usize;

/// Defines functions that interpose those of their names, or wrap them if a name begins with
/// `__wrap_`. Each row has a function of this crate, the index of an argument, and the names. The
/// function of this crate gets the argument and a closure that calls the original function.
///
/// The cancellation of a thread, or an exception of C++, may unwind the frames of these functions,
/// which therefore hold nothing that must be dropped.
macro_rules! around_next {
    ($($around:ident($index:literal): $($name:ident)+;)*) => {$($(
        /// Interposes the function of this name.
        ///
        /// # Safety
        /// As that one.
        #[unsafe(no_mangle)]
        #[allow(clippy::too_many_arguments)]
        pub unsafe extern "C" fn $name(
            a: usize, b: usize, c: usize, d: usize, e: usize, f: usize, g: usize, h: usize,
        ) -> usize {
            static NEXT: std::sync::OnceLock<crate::next::Next> = std::sync::OnceLock::new();
            const NAME: &str = concat!(stringify!($name), "\0");
            let name = NAME.strip_prefix("__wrap_").unwrap_or(NAME);
            // SAFETY: the function has such arguments.
            let next = unsafe { crate::next::next_once(&NEXT, name) };
            // SAFETY: the caller keeps the contract of the function of this name.
            $around([a, b, c, d, e, f, g, h][$index], || unsafe { next(a, b, c, d, e, f, g, h) })
        }
    )+)*};
}
pub(crate) use around_next;
