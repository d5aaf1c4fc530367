//! The data that PEs send each other over UCX besides messages (`kit::message`, `kit::batch`):
//! addresses and keys before they connect.
//!
//! Bytes in, values out; nothing here knows UCX or does I/O. All numbers are little-endian.

mod address;

pub(crate) use address::{Address, MemoryKey};
