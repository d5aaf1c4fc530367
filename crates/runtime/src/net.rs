//! Access to memory that is not mapped here: the open transport, contexts and their endpoints,
//! ordering and completion. It names no transport.

pub mod contexts;
pub(crate) mod copy;
mod doorbell;
pub(crate) mod endpoints;
pub(crate) mod flags;
pub(crate) mod network;
pub mod order;
pub(crate) mod process_host;
pub(crate) mod remote;
pub(crate) mod strided;
