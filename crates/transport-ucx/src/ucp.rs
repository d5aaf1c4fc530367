//! UCX's objects with owners, and its conventions in Rust's.
//!
//! Order of ends: endpoints and what refers to them, workers, registered memory, the context.

mod atomic;
mod context;
mod request;
mod status;
mod worker;

pub(crate) use atomic::Atomic;
pub(crate) use context::{Context, Memory};
pub(crate) use request::{UcpRequest, callback, plain, started};
pub(crate) use status::said;
pub(crate) use worker::{Endpoint, Worker};
