//! UCX's C API (its layer UCP): types, constants and function pointers, and how the library is
//! opened.
//!
//! Nothing is linked: [`open`] looks for the library at run time, so that one build works with and
//! without it. The bindings are committed; `cargo xtask bindings` writes them from UCX's headers.
//! This crate contains no logic: `transport-ucx` uses the functions.
#![allow(unsafe_code)]

mod bindings;

pub use bindings::*;

use std::error::Error;
use std::sync::OnceLock;

/// The name of the library, which has not changed since UCX 1.0.
pub const LIBRARY: &str = "libucp.so.0";

/// The oldest version of UCX that has all functions that Rushmem calls: major, minor.
pub const OLDEST: (u32, u32) = (1, 10);

/// Returns UCX, which the first call opens. It is never closed, since it leaves threads and
/// handlers behind.
///
/// # Errors
/// If the library or a function is missing, or the version is too old; the text says so.
pub fn open() -> Result<&'static Ucp, String> {
    static OPENED: OnceLock<Result<Ucp, String>> = OnceLock::new();
    OPENED.get_or_init(load).as_ref().map_err(String::clone)
}

/// Returns the version of an opened UCX: major, minor, release.
pub fn version(ucp: &Ucp) -> (u32, u32, u32) {
    let (mut major, mut minor, mut release) = (0, 0, 0);
    // SAFETY: it writes three numbers.
    unsafe { ucp.ucp_get_version(&raw mut major, &raw mut minor, &raw mut release) };
    (major, minor, release)
}

fn load() -> Result<Ucp, String> {
    // SAFETY: UCX's initializers may run at any time; the types of its functions are those of its
    // headers.
    let ucp = unsafe { Ucp::new(LIBRARY) }.map_err(|error| {
        let why = error.source().map_or_else(|| error.to_string(), ToString::to_string);
        format!(
            "UCX cannot be opened: {why}; install UCX 1.10 or newer, or name its directory in LD_LIBRARY_PATH"
        )
    })?;
    let (major, minor, release) = version(&ucp);
    if (major, minor) < OLDEST {
        let (old_major, old_minor) = OLDEST;
        return Err(format!(
            "UCX {major}.{minor}.{release} is too old: {old_major}.{old_minor} is the oldest that works"
        ));
    }
    Ok(ucp)
}
