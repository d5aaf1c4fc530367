//! Access to memory of other PEs off the fast path: the open transport, contexts and their
//! endpoints, order and completion, and the library's own flags. The transport is any
//! implementation of the trait `Transport`.

pub mod contexts;
pub(crate) mod copy;
mod doorbell;
pub(crate) mod flags;
pub(crate) mod network;
pub mod order;
pub(crate) mod polls;
pub(crate) mod process_host;
pub(crate) mod remote;
pub(crate) mod strided;
