//! What was issued to one PE.
#![forbid(unsafe_code)]

use crate::pending::PePending;
use crate::ucp::{UcpEndpoint, UcpRequest};
use std::rc::Rc;

/// What was issued to one PE, and by which endpoint.
#[derive(Default)]
pub(super) struct Route {
    pub(super) open: Option<OpenRoute>,
    /// It is among the touched.
    pub(super) touched: bool,
    /// There were puts, or atomic operations of UCX's, since the last flush began.
    pub(super) dirty: bool,
    /// A flush that has not ended.
    pub(super) flush: Option<UcpRequest>,
    /// Before the last fence there were puts that were not known to be complete.
    pub(super) put_before: bool,
}

pub(super) struct OpenRoute {
    pub(super) endpoint: UcpEndpoint,
    pub(super) connection: Rc<PePending>,
}
