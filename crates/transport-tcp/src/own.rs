//! Operations of a PE on its own memory: carried out at once, without a connection.
#![allow(unsafe_code)]

use crate::shared::SharedState;
use rushmem_transport::{AmoRequest, Error, Get, OldValue, Put, RemoteAddr};

/// # Safety
/// The source is valid for reads.
pub(crate) unsafe fn put(shared: &SharedState, put: &Put) -> Result<(), Error> {
    // SAFETY: valid by contract.
    let is_within = unsafe { shared.segments.write_from(put.dest, put.source) };
    shared.host.arrived();
    if is_within { Ok(()) } else { Err(beyond(put.dest)) }
}

/// # Safety
/// The destination is valid for writes.
pub(crate) unsafe fn get(shared: &SharedState, get: &Get) -> Result<(), Error> {
    // SAFETY: valid by contract.
    let is_within = unsafe { shared.segments.read_into(get.source, get.dest) };
    if is_within { Ok(()) } else { Err(beyond(get.source)) }
}

/// Returns the old value.
///
/// # Safety
/// Where the old value goes is valid for writes of a word of the request's width.
pub(crate) unsafe fn amo(shared: &SharedState, request: &AmoRequest) -> Result<u64, Error> {
    let old = shared.segments.apply(request).ok_or_else(|| beyond(request.dest))?;
    shared.host.arrived();
    if let OldValue::AtQuiet(to) = request.old {
        // SAFETY: valid by contract.
        unsafe { request.width.write(to, old) };
    }
    Ok(old)
}

/// Returns a segment that this PE has not registered, though it says so of itself.
fn beyond(at: RemoteAddr) -> Error {
    Error::Invalid(format!("this PE has registered no byte {} of {:?}", at.offset, at.segment))
}
