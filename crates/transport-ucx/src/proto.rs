//! What PEs send each other: addresses and keys when they connect, requests and replies later.
//!
//! Bytes in, values out; nothing here knows UCX or does I/O. All numbers are little-endian.

mod address;
pub(crate) mod batch;
mod bytes;
mod message;

pub(crate) use address::{Address, MemoryKey};
pub(crate) use message::{Due, REPLY, REQUEST, Reply, Request};
