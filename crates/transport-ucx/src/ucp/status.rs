//! UCX's statuses as results.
#![allow(unsafe_code)]

use std::ffi::CStr;
use ucx_sys::{Ucp, ucs_status_t};

/// Returns a status in UCX's words.
pub(crate) fn status_string(ucp: &Ucp, status: ucs_status_t) -> String {
    // SAFETY: it takes any number and returns a text that is never freed.
    let text = unsafe { ucp.ucs_status_string(status) };
    // SAFETY: a C string of the library's own.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

/// Converts a status to a result: `Ok` for `UCS_OK`.
pub(crate) fn fine(ucp: &Ucp, status: ucs_status_t) -> Result<(), String> {
    match status {
        ucx_sys::UCS_OK => Ok(()),
        status => Err(status_string(ucp, status)),
    }
}
