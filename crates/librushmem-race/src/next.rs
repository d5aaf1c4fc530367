//! The functions of other libraries that this one stands before.
#![allow(unsafe_code)]

use core::ffi::{CStr, c_void};

/// Returns the next function of a name, behind this library.
///
/// # Safety
/// `F` is the type of a pointer to that function.
pub unsafe fn next<F: Copy>(name: &CStr) -> F {
    const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
    // SAFETY: looks a name up.
    let found = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) };
    assert!(!found.is_null(), "there is no {name:?} behind the race detector");
    // SAFETY: a function of this type by contract, since it is not null.
    unsafe { std::mem::transmute_copy(&found) }
}

/// Functions that call the one behind them, between what comes before and after.
macro_rules! before_next {
    ($(
        $name:ident($($argument:ident: $type:ty),*) $(-> $result:ty)?
            { $($before:expr)? } then ($($returned:ident)?) { $($after:expr)? }
    )*) => {$(
        /// Stands before the function of this name.
        ///
        /// # Safety
        /// As that one.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($argument: $type),*) $(-> $result)? {
            type Function = unsafe extern "C" fn($($type),*) $(-> $result)?;
            static NEXT: std::sync::OnceLock<Function> = std::sync::OnceLock::new();
            const NAME: &str = concat!(stringify!($name), "\0");
            let name = NAME.strip_prefix("__wrap_").unwrap_or(NAME);
            let next = *NEXT.get_or_init(|| {
                let name = core::ffi::CStr::from_bytes_with_nul(name.as_bytes());
                // SAFETY: the function has this type.
                unsafe { crate::next::next(name.unwrap_or_default()) }
            });
            $($before;)?
            // SAFETY: the same contract.
            let result = unsafe { next($($argument),*) };
            $(let $returned = &result;)?
            $($after;)?
            result
        }
    )*};
}
pub(crate) use before_next;
