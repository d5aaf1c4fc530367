//! Operations of an endpoint that return only when it does not use their local memory any more, as
//! safe functions for tests.
#![allow(unsafe_code)]

use rushmem_transport::{
    AmoOp, AmoRequest, Completion, DestBuf, Endpoint, Error, Get, OldValue, Pe, Put, RemoteAddr,
    SourceBuf,
};

/// Puts bytes to a PE. When it returns, the source may be reused, but the put may not be complete.
pub fn put(
    endpoint: &mut dyn Endpoint,
    pe: Pe,
    dest: RemoteAddr,
    source: &[u8],
) -> Result<(), Error> {
    let put = Put {
        remote: dest,
        // SAFETY: the slice is borrowed during the call, after which the put does not read it.
        local: unsafe { SourceBuf::new(source.as_ptr(), source.len()) },
        completion: Completion::Now,
    };
    endpoint.put(pe, put)
}

/// Gets bytes from a PE. They are complete when it returns.
pub fn get(
    endpoint: &mut dyn Endpoint,
    pe: Pe,
    dest: &mut [u8],
    source: RemoteAddr,
) -> Result<(), Error> {
    let get = Get {
        remote: source,
        // SAFETY: the slice is borrowed during the call, which completes the get.
        local: unsafe { DestBuf::new(dest.as_mut_ptr(), dest.len()) },
        completion: Completion::Now,
    };
    endpoint.get(pe, get)
}

/// Adds one to a word of 8 bytes of a PE and returns its old value.
pub fn add_one(endpoint: &mut dyn Endpoint, pe: Pe, dest: RemoteAddr) -> Result<u64, Error> {
    let request = AmoRequest::of_word(dest, AmoOp::Add, 1);
    endpoint.amo(pe, request, OldValue::Returned)
}
