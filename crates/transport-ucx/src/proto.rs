//! What PEs send each other over UCX besides requests and replies (`kit::message`): addresses and
//! keys before they connect, and small puts that travel together.
//!
//! Bytes in, values out; nothing here knows UCX or does I/O. All numbers are little-endian.

mod address;
pub(crate) mod batch;

pub(crate) use address::{Address, MemoryKey};
