//! Keeps the memory of peers, and memory that was never touched, out of core files.
#![allow(unsafe_code)]

use rustix::mm::{Advice, madvise};
use std::ffi::c_void;

/// Leaves a range out of core files. If the kernel or a sandbox refuses this, core files are larger
/// and nothing else changes, so this is no error.
pub(crate) fn omit(start: *mut c_void, nbytes: usize) {
    // SAFETY: this advice changes no contents, whatever is mapped in the range.
    let _ = unsafe { madvise(start, nbytes, Advice::LinuxDontDump) };
}
