//! The state of a wire's connection to one PE.
#![forbid(unsafe_code)]

use crate::callbacks::ConnectionState;
use crate::ucp::{UcpEndpoint, UcpRequest};
use rushmem_transport::peers::Attempts;
use std::rc::Rc;

/// The state of the connection to one PE.
#[derive(Default)]
pub(super) struct PeRoute {
    pub(super) open: Option<OpenRoute>,
    pub(super) connecting: Option<Connecting>,
    /// The flush that was started last, unless it has ended.
    pub(super) flush: Option<UcpRequest>,
}

/// An endpoint, and the number of operations in flight on it.
pub(super) struct OpenRoute {
    pub(super) endpoint: UcpEndpoint,
    pub(super) connection: Rc<ConnectionState>,
}

/// A connection that is being made.
pub(super) struct Connecting {
    pub(super) attempts: Attempts,
    /// An endpoint, and its first flush.
    pub(super) tried: Option<(OpenRoute, UcpRequest)>,
}
