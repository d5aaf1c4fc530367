//! UCX's objects with owners, and its conventions in Rust's.
//!
//! Order of ends: endpoints and what refers to them, workers, registered memory, the context. It must
//! never know what the workers are used for.
#![allow(unsafe_code)]

mod atomic;
mod context;
mod request;
mod worker;

pub(crate) use atomic::Atomic;
pub(crate) use context::{Context, Memory};
pub(crate) use request::{Request, callback, plain, started};
pub(crate) use worker::{Endpoint, Worker};

use std::ffi::CStr;
use ucx_sys::{Ucp, ucs_status_t};

/// A status in UCX's words.
pub(crate) fn said(ucp: &Ucp, status: ucs_status_t) -> String {
    // SAFETY: it takes any number and returns a text that is never freed.
    let text = unsafe { ucp.ucs_status_string(status) };
    // SAFETY: a C string of the library's own.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

/// `Ok` for `UCS_OK`.
pub(crate) fn fine(ucp: &Ucp, status: ucs_status_t) -> Result<(), String> {
    match status {
        ucx_sys::UCS_OK => Ok(()),
        status => Err(said(ucp, status)),
    }
}
