//! What PEs tell each other: addresses and keys when they connect, requests and replies later.
//!
//! Bytes in, values out; nothing here knows UCX or does I/O. All numbers are little-endian.

mod connect;
mod message;

pub(crate) use connect::{Address, MemoryKey};
pub(crate) use message::{REPLY, REQUEST, Reply, Request};

/// Take a number off the front.
fn u64_of(bytes: &mut &[u8]) -> Option<u64> {
    let (first, rest) = bytes.split_first_chunk::<8>()?;
    *bytes = rest;
    Some(u64::from_le_bytes(*first))
}

/// Take a number off the front.
fn u32_of(bytes: &mut &[u8]) -> Option<u32> {
    let (first, rest) = bytes.split_first_chunk::<4>()?;
    *bytes = rest;
    Some(u32::from_le_bytes(*first))
}
