//! The exit status of a PE that would end well although a race was found.
#![allow(unsafe_code)]

use core::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

unsafe extern "C" {
    fn on_exit(function: extern "C" fn(c_int, *mut c_void), argument: *mut c_void) -> c_int;
}

/// Watches the end of the process.
pub fn register() {
    static IS_REGISTERED: AtomicBool = AtomicBool::new(false);
    if !IS_REGISTERED.swap(true, Relaxed) {
        // SAFETY: the library stays loaded.
        unsafe { on_exit(at_exit, std::ptr::null_mut()) };
    }
}

extern "C" fn at_exit(status: c_int, _: *mut c_void) {
    if status == 0
        && let Some(status) = rushmem_race::process::status()
    {
        // SAFETY: writes what the program has printed, as its exit would.
        unsafe { libc::fflush(std::ptr::null_mut()) };
        // SAFETY: ends the process.
        unsafe { libc::_exit(status) }
    }
}
