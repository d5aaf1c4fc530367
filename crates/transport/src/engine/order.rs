//! The order and completion of what was issued.
//!
//! **After a fence.** Requests are messages with numbers of their own, and their targets keep the
//! order among them (`acks`). Whether an operation waits for earlier ones depends on the
//! [order](StreamOrder) that the wire keeps:
//!
//! - a write that follows a request waits until the request is known to be carried out, unless the
//!   wire orders everything;
//! - a request, or a batch, that follows a write waits until the write is complete, unless messages
//!   arrive after the writes before them;
//! - a write that follows a write waits only where the wire's fence does not order them. Then its
//!   fence is not called.
//!
//! **A signal** follows the data of its put, in one message with them, or as if there were a fence
//! between the two; one that follows all that was issued to its PE is a request that does so.
//!
//! **A quiet** sends what is batched, asks for the acknowledgments of requests (few are answered by
//! themselves), flushes the wire, and waits for all of this and for all answers.

use super::origin::Origin;
use super::requests::RequestParts;
use super::wire::{StreamOrder, Wire, WireNetwork};
use crate::{Error, Pe};

impl<W: Wire> Origin<W> {
    /// Waits until the writes before the last fence are complete, unless the order that the wire
    /// keeps is `enough`, or more.
    #[inline]
    pub(super) fn order_after_writes(
        &mut self,
        network: &W::Network,
        pe: Pe,
        enough: StreamOrder,
    ) -> Result<(), Error> {
        let is_behind = self.caps.order < enough && self.routes[pe].writes_before;
        if is_behind { self.end_writes(network, pe) } else { Ok(()) }
    }

    /// Waits until a write to a PE, or an atomic operation of the network's, may follow what was
    /// issued before.
    #[inline(always)]
    pub(super) fn order_write(&mut self, network: &W::Network, pe: Pe) -> Result<(), Error> {
        network.local().loss.check()?;
        let fences = self.issued.fences();
        match self.routes.get(pe).is_some_and(|route| route.ordered_at == fences) {
            true => Ok(()),
            false => self.order_first_write(network, pe),
        }
    }

    /// Works as [`order_write`](Self::order_write), of the first write since a fence.
    #[inline(never)]
    fn order_first_write(&mut self, network: &W::Network, pe: Pe) -> Result<(), Error> {
        self.reach(network, pe)?;
        self.order_after_requests(network, pe)?;
        self.order_after_writes(network, pe, StreamOrder::WritesByFence)?;
        // Otherwise the wire keeps the order, with each write.
        if !self.routes[pe].writes_before {
            self.routes[pe].ordered_at = self.issued.fences();
        }
        Ok(())
    }

    /// Records that a write to a PE, or an atomic operation of the network's, is not known to be
    /// complete. A put calls this once its wire has the write, so that a NIC does not wait for it.
    #[inline(always)]
    pub(super) fn has_written(&mut self, pe: Pe) {
        if !std::mem::replace(&mut self.routes[pe].dirty, true) {
            self.activate(pe);
        }
    }

    /// Waits until a message may follow all writes to a PE, as if there were a fence.
    pub(super) fn order_after_all(&mut self, network: &W::Network, pe: Pe) -> Result<(), Error> {
        let route = &self.routes[pe];
        let any = route.dirty || route.flushing || route.writes_before;
        let is_ordered = self.caps.order >= StreamOrder::WritesBeforeMessages;
        if any && !is_ordered { self.end_writes(network, pe) } else { Ok(()) }
    }

    fn end_writes(&mut self, network: &W::Network, pe: Pe) -> Result<(), Error> {
        self.begin_flush(network, pe)?;
        self.until(network, Some(pe), |origin| origin.is_flushed(network, pe))?;
        self.routes[pe].writes_before = false;
        Ok(())
    }

    /// Waits until a write that follows the last fence may follow the requests before it.
    #[inline]
    pub(super) fn order_after_requests(
        &mut self,
        network: &W::Network,
        pe: Pe,
    ) -> Result<(), Error> {
        if self.caps.order == StreamOrder::Everything {
            return self.order_after_unsent(network, pe);
        }
        match self.issued.is_before_fence_done(pe) {
            true => Ok(()),
            false => {
                self.ask_for_ack(network, pe)?;
                let done = |origin: &mut Origin<W>| Ok(origin.issued.is_before_fence_done(pe));
                self.until(network, Some(pe), done)
            }
        }
    }

    /// Waits until the wire has taken the requests that found no room, if it keeps everything in
    /// the order in which it takes it.
    #[inline]
    pub(super) fn order_after_unsent(&mut self, network: &W::Network, pe: Pe) -> Result<(), Error> {
        match self.unsent.is_empty() || self.caps.order < StreamOrder::Everything {
            true => Ok(()),
            false => self.until(network, Some(pe), |origin| Ok(origin.unsent.is_empty())),
        }
    }

    /// Requests an acknowledgment of all requests to a PE, unless one is on its way.
    fn ask_for_ack(&mut self, network: &W::Network, pe: Pe) -> Result<(), Error> {
        if self.batcher.has_any(pe) {
            self.send_batch(network, pe, RequestParts { asks: true, ..RequestParts::BATCH })?;
        }
        if !self.issued.must_ask(pe) {
            return Ok(());
        }
        self.send_question(network, pe)
    }

    /// Begins to complete everything towards a PE.
    fn begin_quiet(&mut self, network: &W::Network, pe: Pe) -> Result<(), Error> {
        self.ask_for_ack(network, pe)?;
        self.begin_flush(network, pe)
    }

    /// Sends what is batched for a PE and begins a flush, unless there is nothing new to flush.
    fn begin_flush(&mut self, network: &W::Network, pe: Pe) -> Result<(), Error> {
        self.send_open_batch(network, pe)?;
        let route = &mut self.routes[pe];
        if !std::mem::take(&mut route.dirty) {
            return Ok(());
        }
        route.flushing = true;
        self.wire.begin_flush(network, pe)
    }

    /// Returns true if nothing of the wire's is in flight towards a PE, and its flush has ended.
    fn is_flushed(&mut self, network: &W::Network, pe: Pe) -> Result<bool, Error> {
        let is_flushed = self.wire.is_flushed(network, pe)?;
        if is_flushed {
            self.routes[pe].flushing = false;
        }
        Ok(is_flushed)
    }

    /// Returns true if the wire has nothing to do towards a PE and no request to it lacks an
    /// answer, provided that its flush has begun.
    fn is_idle(&mut self, network: &W::Network, pe: Pe) -> Result<bool, Error> {
        let is_unsent = self.unsent.iter().any(|unsent| unsent.pe == pe);
        Ok(!is_unsent && self.routes[pe].unanswered == 0 && self.is_flushed(network, pe)?)
    }

    fn deactivate(&mut self, pe: Pe) {
        let route = &mut self.routes[pe];
        (route.active, route.writes_before) = (false, false);
    }

    /// Completes everything towards one PE.
    pub(super) fn pe_quiet(&mut self, network: &W::Network, pe: Pe) -> Result<(), Error> {
        network.local().loss.check()?;
        if pe.index() >= self.routes.n_pes() {
            return Err(Error::Unreachable(pe));
        }
        if self.batcher.uses_proxies(&*network.local().host) {
            return self.quiet(network);
        }
        if self.routes[pe].active || self.issued.awaits_ack_of(pe) {
            self.begin_quiet(network, pe)?;
            self.await_quiet(network, pe)?;
            self.active.retain(|&other| other != pe);
        }
        network.local().loss.check()
    }

    /// Waits until what [`begin_quiet`](Self::begin_quiet) began is complete. The PE is neither
    /// among the active ones nor does it owe an acknowledgment afterwards.
    fn await_quiet(&mut self, network: &W::Network, pe: Pe) -> Result<(), Error> {
        self.until(network, Some(pe), |origin| {
            Ok(origin.issued.unacked(pe) == 0 && origin.is_idle(network, pe)?)
        })?;
        self.deactivate(pe);
        self.issued.mark_acked(pe);
        Ok(())
    }

    /// Completes everything.
    pub(super) fn quiet(&mut self, network: &W::Network) -> Result<(), Error> {
        network.local().loss.check()?;
        // Ask all before waiting for one.
        self.begin_quiet_of_all(network)?;
        while let Some(&pe) = self.active.last() {
            self.await_quiet(network, pe)?;
            self.active.pop();
        }
        while let Some(&pe) = self.issued.awaiting_ack().last() {
            self.await_quiet(network, pe)?;
        }
        network.local().loss.check()
    }

    fn begin_quiet_of_all(&mut self, network: &W::Network) -> Result<(), Error> {
        for i in 0..self.active.len() {
            self.begin_quiet(network, self.active[i])?;
        }
        for i in 0..self.issued.awaiting_ack().len() {
            self.ask_for_ack(network, self.issued.awaiting_ack()[i])?;
        }
        Ok(())
    }

    /// Returns whether everything is complete; what is not was begun to be.
    pub(super) fn is_quiet(&mut self, network: &W::Network) -> Result<bool, Error> {
        self.begin_quiet_of_all(network)?;
        self.advance(network, true)?;
        let is_acked = self.issued.awaiting_ack().iter().all(|&pe| self.issued.unacked(pe) == 0);
        if !is_acked || self.is_unfinished() {
            return Ok(false);
        }
        while let Some(&pe) = self.issued.awaiting_ack().last() {
            self.issued.mark_acked(pe);
        }
        Ok(true)
    }

    /// Returns how much towards each PE is not known to be complete; its completion was begun if
    /// there is room for that.
    pub(super) fn in_flight_by_pe(
        &mut self,
        network: &W::Network,
    ) -> Result<Vec<(Pe, u64)>, Error> {
        let awaiting_ack = self.issued.awaiting_ack().iter();
        let mut pes: Vec<Pe> = self.active.iter().chain(awaiting_ack).copied().collect();
        pes.sort_unstable();
        pes.dedup();
        let room = self.caps.max_in_flight.saturating_sub(self.in_flight());
        let has_room = 2 * pes.len() < room && !pes.iter().any(|pe| self.issued.is_full(*pe));
        if has_room && self.is_quiet(network)? {
            return Ok(Vec::new());
        }
        let n = |pe: Pe| {
            let route = &self.routes[pe];
            let of_wire = self.wire.in_flight_to(pe) as u64 + u64::from(route.unanswered);
            let n = u64::from(self.issued.unacked(pe)).max(of_wire);
            if route.active { n.max(1) } else { n }
        };
        Ok(pes.into_iter().map(|pe| (pe, n(pe))).filter(|(_, n)| *n > 0).collect())
    }

    /// Orders what was issued ahead of what follows, towards each PE.
    pub(super) fn fence(&mut self, network: &W::Network) -> Result<(), Error> {
        network.local().loss.check()?;
        if self.batcher.uses_proxies(&*network.local().host) {
            return self.quiet(network);
        }
        self.send_open_batches(network)?;
        self.issued.fence();
        let mut any = false;
        for i in 0..self.active.len() {
            let route = &mut self.routes[self.active[i]];
            route.writes_before |= route.dirty || route.flushing;
            any |= route.writes_before;
        }
        let calls_fence = match self.caps.order {
            StreamOrder::Unordered => false,
            // The wire may hold back requests, too, which its fence sends.
            StreamOrder::Everything => true,
            StreamOrder::WritesByFence | StreamOrder::WritesBeforeMessages => any,
        };
        if calls_fence && !self.wire.fence(network)? {
            self.until(network, None, |origin| origin.wire.fence(network))?;
        }
        Ok(())
    }

    /// Sends what is batched and completes what is in flight, but for writes if it shall not
    /// `flush` them, while the owner is not in a call. Waits for nothing. Returns true if there was
    /// anything to do.
    pub(super) fn advance(&mut self, network: &W::Network, flush: bool) -> Result<bool, Error> {
        self.try_send_open_batches(network)?;
        let worked = self.progress(network)?;
        for i in (0..self.active.len()).rev() {
            if self.in_flight() >= self.caps.max_in_flight {
                break;
            }
            let pe = self.active[i];
            if self.batcher.has_any(pe) || !flush && self.routes[pe].dirty {
                continue;
            }
            self.begin_flush(network, pe)?;
            if self.is_idle(network, pe)? {
                self.deactivate(pe);
                self.active.swap_remove(i);
            }
        }
        Ok(worked)
    }
}
