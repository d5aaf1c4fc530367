//! hwloc's C API as types and function pointers, and how the library is opened: no logic.
//!
//! `bindings` is committed and checked for the layout of every structure at compile time, so that
//! neither libclang nor hwloc's headers are needed to build. `cargo xtask bindings` writes it.
#![allow(unsafe_code)]

mod bindings;

pub use bindings::*;

use std::error::Error;
use std::sync::OnceLock;

/// The name of the library in all releases 2.x of hwloc. Another major version has another name and
/// other structures.
pub const LIBRARY: &str = "libhwloc.so.15";

/// Returns hwloc, which the first call opens. It is never closed, since its plugins may leave
/// threads or handlers behind.
///
/// # Errors
/// If the library or a function is missing; the text names it.
pub fn open() -> Result<&'static Hwloc, String> {
    static OPENED: OnceLock<Result<Hwloc, String>> = OnceLock::new();
    OPENED.get_or_init(load).as_ref().map_err(String::clone)
}

fn load() -> Result<Hwloc, String> {
    // SAFETY: the library's initializers may run at any time; the types of its functions are those
    // of its headers.
    unsafe { Hwloc::new(LIBRARY) }.map_err(|error| {
        let why = error
            .source()
            .map_or_else(|| error.to_string(), ToString::to_string);
        format!("hwloc cannot be opened: {why}")
    })
}
