//! Types that own UCX's objects, and UCX's status codes as results.
//!
//! Objects must be destroyed in this order: endpoints with their keys and requests, workers,
//! registered memory, the context.

mod atomic;
mod context;
mod received;
mod request;
mod worker;

pub(crate) use atomic::{AtomicArguments, UcpAtomic};
pub(crate) use context::{ConfigChange, UcpContext, UcpMemory, UcpResource};
pub(crate) use received::{ReceivedData, ReceivedMessage};
pub(crate) use request::{UcpRequest, callback_params, plain_params, started, status_string};
pub(crate) use worker::{UcpEndpoint, UcpRemote, Worker};
