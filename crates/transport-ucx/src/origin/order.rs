//! What orders and completes what was issued: fence, quiet, and the service thread's help.
//!
//! Order: UCX's fence orders puts among themselves, and its atomic operations; it does not order
//! messages. So a request, or a put that is held back for a message, waits after a fence until the puts before it
//! are complete, and a put that follows a fence waits until the requests before it have been answered. Where UCX's
//! fence itself waits, and serves no peer meanwhile, it is not called, and what follows a fence waits for all.
#![allow(unsafe_code)]

use super::Origin;
use crate::peers::Peers;
use crate::pending::Line;
use crate::ucp::{plain, said, started};
use rushmem_transport::{Error, Pe};

impl Origin {
    /// Wait until what follows the last fence may begin towards a PE; where it is `ordered` behind puts, UCX's
    /// fence sees to these.
    pub(super) fn follow(
        &mut self,
        shared: &impl Peers,
        pe: Pe,
        line: &Line,
        ordered: bool,
    ) -> Result<(), Error> {
        if self.ways[pe.index()].put_before && !ordered {
            self.start_flush(shared, pe)?;
            self.until(shared, |origin| !origin.is_flushing(shared, pe) && line.transfers() == 0)?;
            self.ways[pe.index()].put_before = false;
        }
        if self.ways[pe.index()].asked_before {
            self.until(shared, |_| line.unanswered() == 0)?;
            self.ways[pe.index()].asked_before = false;
        }
        Ok(())
    }

    /// Send what is held back for a PE and begin a flush, unless there is nothing new to flush.
    fn start_flush(&mut self, shared: &impl Peers, pe: Pe) -> Result<(), Error> {
        self.send_held(shared, pe)?;
        let ucp = self.ucp();
        let way = &mut self.ways[pe.index()];
        let Some(open) = way.open.as_ref().filter(|_| way.dirty) else { return Ok(()) };
        way.dirty = false;
        if let Some(older) = way.flush.take() {
            older.free(ucp);
        }
        let params = plain();
        // SAFETY: a live endpoint.
        let begun = unsafe { ucp.ucp_ep_flush_nbx(open.endpoint.handle, &raw const params) };
        let flush = started(begun).map_err(|status| shared.lose(pe, &said(ucp, status)))?;
        way.flush = flush;
        Ok(())
    }

    /// Whether a flush towards a PE goes on. One that failed has ended: its way is broken.
    fn is_flushing(&mut self, shared: &impl Peers, pe: Pe) -> bool {
        let ucp = self.ucp();
        let way = &mut self.ways[pe.index()];
        let Some(flush) = way.flush else { return false };
        let Some(status) = flush.status(ucp) else { return true };
        flush.free(ucp);
        way.flush = None;
        if let Err(status) = status {
            shared.lose(pe, &said(ucp, status));
        }
        false
    }

    /// Whether everything towards a PE is complete, provided that its flush has begun.
    fn is_complete(&mut self, shared: &impl Peers, pe: Pe) -> bool {
        let done = self.ways[pe.index()]
            .open
            .as_ref()
            .is_none_or(|open| open.line.transfers() == 0 && open.line.unanswered() == 0);
        done && !self.is_flushing(shared, pe)
    }

    fn forget_touched(&mut self, pe: Pe) {
        let way = &mut self.ways[pe.index()];
        way.touched = false;
        way.put_before = false;
        way.asked_before = false;
    }

    /// Complete everything towards one PE.
    pub(crate) fn pe_quiet(&mut self, shared: &impl Peers, pe: Pe) -> Result<(), Error> {
        shared.check()?;
        if self.ways.get(pe.index()).ok_or(Error::Unreachable(pe))?.touched {
            self.start_flush(shared, pe)?;
            self.until(shared, |origin| origin.is_complete(shared, pe))?;
            self.forget_touched(pe);
            self.touched.retain(|&other| other != pe.0);
        }
        shared.check()
    }

    /// Complete everything.
    pub(crate) fn quiet(&mut self, shared: &impl Peers) -> Result<(), Error> {
        shared.check()?;
        // Ask all before waiting for one.
        for i in 0..self.touched.len() {
            self.start_flush(shared, Pe(self.touched[i]))?;
        }
        while let Some(&pe) = self.touched.last() {
            self.until(shared, |origin| origin.is_complete(shared, Pe(pe)))?;
            self.forget_touched(Pe(pe));
            self.touched.pop();
        }
        shared.check()
    }

    /// Order what was issued ahead of what follows, towards each PE.
    pub(crate) fn fence(&mut self, shared: &impl Peers) -> Result<(), Error> {
        shared.check()?;
        for i in 0..self.touched.len() {
            self.send_held(shared, Pe(self.touched[i]))?;
        }
        if self.worker.orders() {
            // UCX's fence says nothing of operations that it has only in part begun.
            self.until(shared, |origin| origin.pending.transfers() == 0)?;
        }
        let mut any = false;
        for &pe in &self.touched {
            let way = &mut self.ways[pe as usize];
            let asked = way.open.as_ref().is_some_and(|open| open.line.unanswered() > 0);
            way.asked_before |= asked;
            way.put_before |= way.dirty || way.flush.is_some();
            any |= way.put_before;
        }
        if any && self.worker.orders() {
            self.worker.fence().map_err(Error::Invalid)?;
        }
        Ok(())
    }

    /// While its owner is elsewhere: let it work and complete what is in flight. Whether there was
    /// anything to do.
    pub(crate) fn advance(&mut self, shared: &impl Peers) -> Result<bool, Error> {
        let worked = self.progress(shared)?;
        for i in (0..self.touched.len()).rev() {
            if self.pending.in_flight() >= shared.max_in_flight() {
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
