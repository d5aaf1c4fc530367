//! What orders and completes what was issued: fence, quiet, and the service thread's help.
//!
//! Order: UCX's fence orders puts among themselves, and its atomic operations; it does not order
//! messages. So a request, or a put that is held back for a message, waits after a fence until the puts before it
//! are complete, and a put that follows a fence waits until the requests before it have been answered. Where UCX's
//! fence itself waits, and serves no peer meanwhile, it is not called, and what follows a fence waits for all.
#![forbid(unsafe_code)]

use super::Origin;
use crate::pending::Connection;
use crate::shared::Shared;
use crate::ucp::said;
use rushmem_transport::{Error, Pe};

impl Origin {
    /// Waits until what follows the last fence may begin towards a PE; where it is `ordered` behind puts, UCX's
    /// fence sees to these.
    #[inline]
    pub(super) fn follow(
        &mut self,
        shared: &Shared,
        pe: Pe,
        connection: &Connection,
        ordered: bool,
    ) -> Result<(), Error> {
        let route = &self.routes[pe.index()];
        match route.put_before || route.asked_before {
            true => self.follow_fence(shared, pe, connection, ordered),
            false => Ok(()),
        }
    }

    fn follow_fence(
        &mut self,
        shared: &Shared,
        pe: Pe,
        connection: &Connection,
        ordered: bool,
    ) -> Result<(), Error> {
        if self.routes[pe.index()].put_before && !ordered {
            self.start_flush(shared, pe)?;
            self.until(shared, |origin| {
                !origin.is_flushing(shared, pe) && connection.transfers() == 0
            })?;
            self.routes[pe.index()].put_before = false;
        }
        if self.routes[pe.index()].asked_before {
            self.until(shared, |_| connection.unanswered() == 0)?;
            self.routes[pe.index()].asked_before = false;
        }
        Ok(())
    }

    /// Sends what is held back for a PE and begins a flush, unless there is nothing new to flush.
    fn start_flush(&mut self, shared: &Shared, pe: Pe) -> Result<(), Error> {
        self.send_held(shared, pe)?;
        let ucp = self.ucp();
        let route = &mut self.routes[pe.index()];
        let Some(open) = route.open.as_ref().filter(|_| route.dirty) else { return Ok(()) };
        route.dirty = false;
        if let Some(older) = route.flush.take() {
            older.free(ucp);
        }
        let flush = open.endpoint.flush(ucp);
        route.flush = flush.map_err(|status| shared.lose(pe, &said(ucp, status)))?;
        Ok(())
    }

    /// Whether a flush towards a PE goes on. One that failed has ended: its connection is broken.
    fn is_flushing(&mut self, shared: &Shared, pe: Pe) -> bool {
        let ucp = self.ucp();
        let route = &mut self.routes[pe.index()];
        let Some(flush) = route.flush else { return false };
        let Some(status) = flush.status(ucp) else { return true };
        flush.free(ucp);
        route.flush = None;
        if let Err(status) = status {
            shared.lose(pe, &said(ucp, status));
        }
        false
    }

    /// Whether everything towards a PE is complete, provided that its flush has begun.
    fn is_complete(&mut self, shared: &Shared, pe: Pe) -> bool {
        let done = self.routes[pe.index()].open.as_ref().is_none_or(|open| {
            open.connection.transfers() == 0 && open.connection.unanswered() == 0
        });
        done && !self.is_flushing(shared, pe)
    }

    fn forget_touched(&mut self, pe: Pe) {
        let route = &mut self.routes[pe.index()];
        route.touched = false;
        route.put_before = false;
        route.asked_before = false;
    }

    /// Completes everything towards one PE.
    pub(crate) fn pe_quiet(&mut self, shared: &Shared, pe: Pe) -> Result<(), Error> {
        shared.loss.check()?;
        if pe.index() >= self.routes.n_pes() {
            return Err(Error::Unreachable(pe));
        }
        if self.routes[pe.index()].touched {
            self.start_flush(shared, pe)?;
            self.until(shared, |origin| origin.is_complete(shared, pe))?;
            self.forget_touched(pe);
            self.touched.retain(|&other| other != pe.0);
        }
        shared.loss.check()
    }

    /// Completes everything.
    pub(crate) fn quiet(&mut self, shared: &Shared) -> Result<(), Error> {
        shared.loss.check()?;
        // Ask all before waiting for one.
        for i in 0..self.touched.len() {
            self.start_flush(shared, Pe(self.touched[i]))?;
        }
        while let Some(&pe) = self.touched.last() {
            self.until(shared, |origin| origin.is_complete(shared, Pe(pe)))?;
            self.forget_touched(Pe(pe));
            self.touched.pop();
        }
        shared.loss.check()
    }

    /// Orders what was issued ahead of what follows, towards each PE.
    pub(crate) fn fence(&mut self, shared: &Shared) -> Result<(), Error> {
        shared.loss.check()?;
        for i in 0..self.touched.len() {
            self.send_held(shared, Pe(self.touched[i]))?;
        }
        if self.worker.orders() {
            // UCX's fence says nothing of operations that it has only in part begun.
            self.until(shared, |origin| origin.pending.transfers() == 0)?;
        }
        let mut any = false;
        for &pe in &self.touched {
            let route = &mut self.routes[pe as usize];
            let asked = route.open.as_ref().is_some_and(|open| open.connection.unanswered() > 0);
            route.asked_before |= asked;
            route.put_before |= route.dirty || route.flush.is_some();
            any |= route.put_before;
        }
        if any && self.worker.orders() {
            self.worker.fence().map_err(|why| shared.loss.of_self(&why))?;
        }
        Ok(())
    }

    /// While its owner is elsewhere: lets it work and completes what is in flight. Returns whether there was
    /// anything to do.
    pub(crate) fn advance(&mut self, shared: &Shared) -> Result<bool, Error> {
        let worked = self.progress(shared)?;
        for i in (0..self.touched.len()).rev() {
            if self.pending.in_flight() >= shared.tuning.max_in_flight {
                break;
            }
            let pe = Pe(self.touched[i]);
            self.start_flush(shared, pe)?;
            if self.is_complete(shared, pe) {
                self.forget_touched(pe);
                self.touched.swap_remove(i);
            }
        }
        Ok(worked)
    }
}
