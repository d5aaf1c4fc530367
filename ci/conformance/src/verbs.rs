//! Operations of an endpoint that return only when it does not use their local memory any more, as
//! safe functions for tests.
#![allow(unsafe_code)]

use rushmem_transport::{
    AmoOp, AmoRequest, AmoWidth, Completion, Endpoint, Error, Get, LocalBuf, OldValue, Pe, Put,
    RemoteAddr,
};

/// Puts bytes to a PE. When it returns, the source may be reused, but the put may not be complete.
pub fn put(
    endpoint: &mut dyn Endpoint,
    pe: Pe,
    dest: RemoteAddr,
    source: &[u8],
) -> Result<(), Error> {
    let source = LocalBuf::source(source.as_ptr(), source.len());
    // SAFETY: the slice is borrowed during the call, after which the put does not read it.
    unsafe {
        endpoint.put(
            pe,
            Put {
                dest,
                source,
                completion: Completion::Now,
            },
        )
    }
}

/// Gets bytes from a PE. They are complete when it returns.
pub fn get(
    endpoint: &mut dyn Endpoint,
    pe: Pe,
    dest: &mut [u8],
    source: RemoteAddr,
) -> Result<(), Error> {
    let dest = LocalBuf {
        base: dest.as_mut_ptr(),
        nbytes: dest.len(),
    };
    // SAFETY: the slice is borrowed during the call, which completes the get.
    unsafe {
        endpoint.get(
            pe,
            Get {
                dest,
                source,
                completion: Completion::Now,
            },
        )
    }
}

/// Adds one to a word of 8 bytes of a PE and returns its old value.
pub fn add_one(endpoint: &mut dyn Endpoint, pe: Pe, dest: RemoteAddr) -> Result<u64, Error> {
    let (width, op, old) = (AmoWidth::Eight, AmoOp::Add, OldValue::Returned);
    // SAFETY: the old value is returned.
    unsafe {
        endpoint.amo(
            pe,
            AmoRequest {
                dest,
                width,
                op,
                operand: 1,
                condition: 0,
                old,
            },
        )
    }
}
