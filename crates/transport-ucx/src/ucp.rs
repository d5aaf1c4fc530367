//! UCX's objects as types that own them, and its status codes as results.
//!
//! They end in this order: endpoints and what refers to them, workers, registered memory, the
//! context.

mod atomic;
mod context;
mod received;
mod request;
mod worker;

pub(crate) use atomic::UcpAtomic;
pub(crate) use context::{UcpContext, UcpMemory};
pub(crate) use received::{ReceivedData, ReceivedMessage};
pub(crate) use request::{UcpRequest, callback, plain, started, status_string};
pub(crate) use worker::{UcpEndpoint, Worker};
