//! What orders and completes what was issued: fence, quiet, and the service thread's help.
//!
//! Order: UCX's fence orders puts among themselves, and its atomic operations; it does not order
//! messages, which have numbers of their own. So a request, or a batch of small operations, waits
//! after a fence until the puts before it are complete, and a put that follows a fence waits until
//! the requests before it are known to be carried out. Where UCX's fence itself waits,
//! and serves no peer meanwhile, it is not called, and what follows a fence waits for all puts.
//!
//! Few requests are acknowledged by messages (`kit::requests`): a call that waits asks for one.
#![allow(unsafe_code)]

use super::Origin;
use super::requests::MessageParts;
use crate::pending::PePending;
use crate::shared::SharedState;
use crate::ucp::said;
use rushmem_transport::{Error, Pe};

impl Origin {
    /// Waits until a put or a message that follows the last fence may follow the puts before it;
    /// where it is `ordered` behind puts, UCX's fence sees to these.
    #[inline]
    pub(super) fn follow_puts(
        &mut self,
        shared: &SharedState,
        pe: Pe,
        connection: &PePending,
        ordered: bool,
    ) -> Result<(), Error> {
        match self.routes[pe].put_before && !ordered {
            true => self.end_puts(shared, pe, connection),
            false => Ok(()),
        }
    }

    /// What goes to a PE next follows all puts there, as if there were a fence.
    pub(super) fn follow_all_puts(&mut self, pe: Pe) {
        let route = &mut self.routes[pe];
        route.put_before |= route.dirty || route.flush.is_some();
    }

    fn end_puts(
        &mut self,
        shared: &SharedState,
        pe: Pe,
        connection: &PePending,
    ) -> Result<(), Error> {
        self.start_flush(shared, pe)?;
        self.until(shared, Some(pe), |origin| {
            !origin.is_flushing(shared, pe) && connection.transfers() == 0
        })?;
        self.routes[pe].put_before = false;
        Ok(())
    }

    /// Waits until a put that follows the last fence may follow the requests before it. Among
    /// themselves requests have an order.
    #[inline]
    pub(super) fn follow_requests(&mut self, shared: &SharedState, pe: Pe) -> Result<(), Error> {
        match self.issued.is_before_fence_done(pe) {
            true => Ok(()),
            false => {
                self.ask_for_ack(shared, pe)?;
                self.until(shared, Some(pe), |origin| origin.issued.is_before_fence_done(pe))
            }
        }
    }

    /// Returns how many requests a PE has acknowledged.
    #[cfg(test)]
    pub(crate) fn acked(&self, pe: Pe) -> u32 {
        self.issued.acked(pe)
    }

    /// Waits until the window has room for one more request to a PE.
    #[inline]
    pub(super) fn room_in_window(&mut self, shared: &SharedState, pe: Pe) -> Result<(), Error> {
        if !self.issued.is_full(pe) {
            return Ok(());
        }
        shared.state.count_retry();
        self.until(shared, Some(pe), |origin| !origin.issued.is_full(pe))
    }

    /// Requests an acknowledgment of all requests to a PE, unless one is on its way.
    fn ask_for_ack(&mut self, shared: &SharedState, pe: Pe) -> Result<(), Error> {
        if !self.issued.must_ask(pe) {
            return Ok(());
        }
        // SAFETY: there is no data, and nothing is fetched.
        unsafe { self.send(shared, pe, MessageParts { asks: true, ..MessageParts::EMPTY }) }
            .map(|_| ())
    }

    /// Begins to complete everything towards a PE.
    fn begin_quiet(&mut self, shared: &SharedState, pe: Pe) -> Result<(), Error> {
        self.send_gathered(shared, pe)?;
        self.ask_for_ack(shared, pe)?;
        self.start_flush(shared, pe)
    }

    /// Sends what is gathered for a PE and begins a flush, unless there is nothing new to flush.
    fn start_flush(&mut self, shared: &SharedState, pe: Pe) -> Result<(), Error> {
        self.send_gathered(shared, pe)?;
        let ucp = self.ucp();
        let route = &mut self.routes[pe];
        let Some(open) = route.open.as_ref().filter(|_| route.dirty) else { return Ok(()) };
        route.dirty = false;
        if let Some(older) = route.flush.take() {
            older.free(ucp);
        }
        let flush = open.endpoint.flush(ucp);
        route.flush = flush.map_err(|status| shared.lose(pe, &said(ucp, status)))?;
        Ok(())
    }

    /// Returns true if a flush towards a PE goes on. One that failed has ended: its connection is
    /// broken.
    fn is_flushing(&mut self, shared: &SharedState, pe: Pe) -> bool {
        let ucp = self.ucp();
        let route = &mut self.routes[pe];
        let Some(flush) = route.flush else { return false };
        let Some(status) = flush.status(ucp) else { return true };
        flush.free(ucp);
        route.flush = None;
        if let Err(status) = status {
            shared.lose(pe, &said(ucp, status));
        }
        false
    }

    /// Returns true if UCX has nothing to do towards a PE and no old value is due, provided that
    /// its flush has begun.
    fn is_settled(&mut self, shared: &SharedState, pe: Pe) -> bool {
        let route = &self.routes[pe];
        let is_idle = route.open.as_ref().is_none_or(|open| open.connection.is_idle());
        is_idle && !self.is_flushing(shared, pe)
    }

    fn forget_touched(&mut self, pe: Pe) {
        let route = &mut self.routes[pe];
        route.touched = false;
        route.put_before = false;
    }

    /// Completes everything towards one PE.
    pub(crate) fn pe_quiet(&mut self, shared: &SharedState, pe: Pe) -> Result<(), Error> {
        shared.loss.check()?;
        if pe.index() >= self.routes.n_pes() {
            return Err(Error::Unreachable(pe));
        }
        if self.gather.uses_proxies(&*shared.host) {
            return self.quiet(shared);
        }
        let route = &self.routes[pe];
        if route.touched || self.issued.owes(pe) {
            self.begin_quiet(shared, pe)?;
            self.await_quiet(shared, pe)?;
            self.touched.retain(|&other| other != pe.0);
        }
        shared.loss.check()
    }

    /// Waits until what [`begin_quiet`](Origin::begin_quiet) began is complete. The PE is neither
    /// among the touched nor among the owing afterwards.
    fn await_quiet(&mut self, shared: &SharedState, pe: Pe) -> Result<(), Error> {
        self.until(shared, Some(pe), |origin| {
            origin.issued.unacked(pe) == 0 && origin.is_settled(shared, pe)
        })?;
        self.forget_touched(pe);
        self.issued.settle(pe);
        Ok(())
    }

    /// Completes everything.
    pub(crate) fn quiet(&mut self, shared: &SharedState) -> Result<(), Error> {
        shared.loss.check()?;
        // Ask all before waiting for one.
        self.begin_quiet_of_all(shared)?;
        while let Some(&pe) = self.touched.last() {
            self.await_quiet(shared, Pe(pe))?;
            self.touched.pop();
        }
        while let Some(&pe) = self.issued.owing().last() {
            self.await_quiet(shared, pe)?;
        }
        shared.loss.check()
    }

    fn begin_quiet_of_all(&mut self, shared: &SharedState) -> Result<(), Error> {
        for i in 0..self.touched.len() {
            self.begin_quiet(shared, Pe(self.touched[i]))?;
        }
        for i in 0..self.issued.owing().len() {
            self.ask_for_ack(shared, self.issued.owing()[i])?;
        }
        Ok(())
    }

    /// Returns whether everything is complete; what is not was begun to be.
    pub(crate) fn is_quiet(&mut self, shared: &SharedState) -> Result<bool, Error> {
        self.begin_quiet_of_all(shared)?;
        self.advance(shared, true)?;
        let is_acked = self.issued.owing().iter().all(|&pe| self.issued.unacked(pe) == 0);
        if !is_acked || self.is_unfinished() {
            return Ok(false);
        }
        while let Some(&pe) = self.issued.owing().last() {
            self.issued.settle(pe);
        }
        Ok(true)
    }

    /// Returns how much towards each PE is not known to be complete; its completion was begun if
    /// there is room for that.
    pub(crate) fn in_flight(&mut self, shared: &SharedState) -> Result<Vec<(Pe, u64)>, Error> {
        let owing = self.issued.owing().iter().copied();
        let mut pes: Vec<Pe> = self.touched.iter().map(|&pe| Pe(pe)).chain(owing).collect();
        pes.sort_unstable();
        pes.dedup();
        let room = shared.tuning.max_in_flight.saturating_sub(self.pending.in_flight());
        let has_room = 2 * pes.len() < room && !pes.iter().any(|pe| self.issued.is_full(*pe));
        if has_room && self.is_quiet(shared)? {
            return Ok(Vec::new());
        }
        let n = |pe: Pe| {
            let route = &self.routes[pe];
            let open = route.open.as_ref();
            let of_ucx = open.map_or(0, |open| open.connection.in_flight() as u64);
            let n = u64::from(self.issued.unacked(pe)).max(of_ucx);
            if route.touched { n.max(1) } else { n }
        };
        Ok(pes.into_iter().map(|pe| (pe, n(pe))).filter(|(_, n)| *n > 0).collect())
    }

    /// Orders what was issued ahead of what follows, towards each PE.
    pub(crate) fn fence(&mut self, shared: &SharedState) -> Result<(), Error> {
        shared.loss.check()?;
        if self.gather.uses_proxies(&*shared.host) {
            return self.quiet(shared);
        }
        self.send_all_gathered(shared)?;
        self.issued.fence();
        let mut any = false;
        for &pe in &self.touched {
            let route = &mut self.routes[Pe(pe)];
            route.put_before |= route.dirty || route.flush.is_some();
            any |= route.put_before;
        }
        if any && self.worker.orders() {
            // UCX's fence says nothing of operations that it has only in part begun.
            self.until(shared, None, |origin| origin.pending.transfers() == 0)?;
            self.worker.fence().map_err(|why| shared.loss.of_self(&why))?;
        }
        Ok(())
    }

    /// While its owner is elsewhere: sends what is gathered, lets it work and completes what is in
    /// flight, but for puts if it shall not `flush` them. Returns whether there was anything to do.
    pub(crate) fn advance(&mut self, shared: &SharedState, flush: bool) -> Result<bool, Error> {
        self.send_all_gathered(shared)?;
        let worked = self.progress(shared)?;
        for i in (0..self.touched.len()).rev() {
            if self.pending.in_flight() >= shared.tuning.max_in_flight {
                break;
            }
            let pe = Pe(self.touched[i]);
            if !flush && self.routes[pe].dirty {
                continue;
            }
            self.start_flush(shared, pe)?;
            if self.is_settled(shared, pe) {
                self.forget_touched(pe);
                self.touched.swap_remove(i);
            }
        }
        Ok(worked)
    }
}
