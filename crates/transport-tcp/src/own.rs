//! Operations of a PE on its own memory: carried out at once, without a connection.
#![allow(unsafe_code)]

use crate::shared::SharedState;
use rushmem_transport::{AmoRequest, Error, Get, OldValue, Put};

/// # Safety
/// The source is valid for reads.
pub(crate) unsafe fn put(shared: &SharedState, put: &Put) -> Result<(), Error> {
    // SAFETY: valid by contract.
    let is_within = unsafe { shared.segments.write_from(put.dest, put.source) };
    shared.host.arrived();
    is_within.then_some(()).ok_or(Error::Unreachable(shared.me))
}

/// # Safety
/// The destination is valid for writes.
pub(crate) unsafe fn get(shared: &SharedState, get: &Get) -> Result<(), Error> {
    // SAFETY: valid by contract.
    let is_within = unsafe { shared.segments.read_into(get.source, get.dest) };
    is_within.then_some(()).ok_or(Error::Unreachable(shared.me))
}

/// Returns the old value.
///
/// # Safety
/// Where the old value goes is valid for writes of a word of the request's width.
pub(crate) unsafe fn amo(shared: &SharedState, request: &AmoRequest) -> Result<u64, Error> {
    let old = shared.segments.apply(request).ok_or(Error::Unreachable(shared.me))?;
    shared.host.arrived();
    if let OldValue::AtQuiet(to) = request.old {
        // SAFETY: valid by contract.
        unsafe { request.width.write(to, old) };
    }
    Ok(old)
}
