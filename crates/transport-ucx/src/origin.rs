//! What the contexts of one worker issue, to every peer: puts, gets, requests.
//!
//! This module does not know which other threads poll its worker.
#![allow(unsafe_code)]

mod abandon;
mod blocks;
mod establish;
mod gathered;
mod order;
mod requests;
mod route;
mod strided;
pub(crate) mod transfers;
mod waits;

use crate::connect;
use crate::pending::{PePending, Pending, replied};
use crate::settings::{BATCH_NBYTES, SESSION_BATCH_NBYTES};
use crate::shared::SharedState;
use crate::target::REPLY_KIND;
use crate::ucp::{UcpContext, UcpRequest, Worker, said};
use route::{OpenRoute, Route};
use rushmem_transport::kit::acks::Acks;
use rushmem_transport::kit::gather::Gather;
use rushmem_transport::kit::pe_map::PeMap;
use rushmem_transport::kit::requests::IssuedRequests;
use rushmem_transport::{Error, Pe, RemoteAddr, Segment};
use std::rc::Rc;
use std::sync::Arc;
use ucx_sys::{Ucp, ucp_ep_h, ucp_rkey_h, ucs_status_t};

/// A worker that issues. Fields are dropped in this order: the worker before what its callbacks
/// use.
pub(crate) struct Origin {
    worker: Worker,
    issued: IssuedRequests,
    gather: Gather,
    routes: PeMap<Route>,
    pending: Rc<Pending>,
    /// The PEs towards which UCX may have something to do, or an old value is due.
    touched: Vec<u32>,
    /// Endpoints that were closed by force, as they failed or after a loss; UCX may still call back
    /// for them.
    closed: Vec<OpenRoute>,
    /// Requests whose callers got an error for a loss, or that no thread waits for: UCX may not be
    /// done with them.
    given_up: Vec<UcpRequest>,
}

// SAFETY: what it shares by `Rc` it shares with its own worker alone, in one thread at a time.
unsafe impl Send for Origin {}

impl Origin {
    /// At most `window` requests to a PE are not acknowledged.
    pub(crate) fn new(
        context: &Arc<UcpContext>,
        acks: &Acks,
        window: u32,
    ) -> Result<Origin, String> {
        let worker = Worker::new(context)?;
        let (number, counts) = acks.origin();
        let pending = Rc::new(Pending::new(Arc::clone(&counts)));
        let arg = Rc::as_ptr(&pending).cast_mut().cast();
        // SAFETY: the callback takes a `Pending`, which is dropped after the worker.
        unsafe { worker.on_message(REPLY_KIND, Some(replied), arg) }?;
        let routes = PeMap::new(acks.n_pes());
        let issued = IssuedRequests::new(number, counts, acks.n_pes(), window);
        let gather = Gather::new(acks.n_pes(), (BATCH_NBYTES, SESSION_BATCH_NBYTES));
        let (touched, closed, given_up) = (Vec::new(), Vec::new(), Vec::new());
        Ok(Origin { worker, issued, gather, routes, pending, touched, closed, given_up })
    }

    pub(crate) fn worker(&self) -> &Worker {
        &self.worker
    }

    fn ucp(&self) -> &'static Ucp {
        self.worker.ucp()
    }

    /// It must be polled for something to complete.
    pub(crate) fn is_unfinished(&self) -> bool {
        !self.touched.is_empty()
    }

    /// Some PE may not have carried out all requests. What UCX has still to send of them goes when
    /// the worker is polled, when its descriptor becomes readable.
    pub(crate) fn is_owed(&self) -> bool {
        self.issued.any_owing()
    }

    /// UCX has transfers in flight.
    pub(crate) fn moves_data(&self) -> bool {
        self.pending.transfers() > 0 || self.has_gathered()
    }

    /// Connects to a PE, unless that was done before; returns the endpoint and the connection.
    #[inline]
    fn connection(
        &mut self,
        shared: &SharedState,
        pe: Pe,
    ) -> Result<(ucp_ep_h, Rc<PePending>), Error> {
        shared.loss.check()?;
        if pe.index() >= self.routes.n_pes() || self.routes[pe].open.is_none() {
            self.connect(shared, pe)?;
        }
        let route = &mut self.routes[pe];
        let Some(open) = &route.open else { return Err(Error::Unreachable(pe)) };
        if let Some(status) = open.connection.broken() {
            return Err(self.fails(shared, pe)(status));
        }
        Ok((open.endpoint.handle, Rc::clone(&open.connection)))
    }

    /// UCX may have something to do towards a PE.
    #[inline]
    fn touch(&mut self, pe: Pe) {
        if !std::mem::replace(&mut self.routes[pe].touched, true) {
            self.touched.push(pe.0);
        }
    }

    /// The key to an address of a PE that is connected, which [`part`](Self::part) has found.
    #[inline]
    fn key(&mut self, shared: &SharedState, pe: Pe, at: RemoteAddr) -> Result<ucp_rkey_h, Error> {
        let open = self.routes[pe].open.as_ref();
        if !shared.peers.get(pe)?.is_covered(at, 1) {
            let blocks = open.map(|open| &open.endpoint.blocks);
            let key = blocks.and_then(|blocks| blocks.get(blocks.block(at.offset)));
            return key.copied().ok_or(Error::Unreachable(pe));
        }
        match open.map(|open| open.endpoint.keys[at.segment as usize]) {
            Some(key) if !key.is_null() => Ok(key),
            _ => self.unpack(shared, pe, at.segment),
        }
    }

    #[cold]
    fn unpack(
        &mut self,
        shared: &SharedState,
        pe: Pe,
        segment: Segment,
    ) -> Result<ucp_rkey_h, Error> {
        let ucp = self.ucp();
        let open = self.routes[pe].open.as_mut().ok_or(Error::Unreachable(pe))?;
        let record = shared.peers.record(pe).ok_or(Error::Unreachable(pe))?;
        let key = open.endpoint.unpack(ucp, &connect::key(pe, record, segment)?.packed);
        let key = key.map_err(|why| shared.lose(pe, &format!("its memory: {why}")))?;
        open.endpoint.keys[segment as usize] = key;
        Ok(key)
    }

    /// Lets the worker work; returns whether there was anything to do.
    pub(crate) fn progress(&mut self, shared: &SharedState) -> Result<bool, Error> {
        let worked = self.worker.progress();
        if let Some(message) = self.pending.take_refused() {
            return Err(shared.refuse(&message));
        }
        if self.pending.take_broke() {
            for (pe, route) in self.routes.iter() {
                // Who breaks with us when nothing is in flight may have left in order.
                let status = route.open.as_ref().and_then(|open| open.connection.broken());
                if let Some(status) = status.filter(|_| route.touched || self.issued.owes(pe)) {
                    return Err(shared.lose(pe, &said(self.ucp(), status)));
                }
            }
        }
        shared.loss.check().map(|()| worked)
    }

    fn fails(&self, shared: &SharedState, pe: Pe) -> impl Fn(ucs_status_t) -> Error {
        let ucp = self.ucp();
        move |status| shared.lose(pe, &said(ucp, status))
    }
}
