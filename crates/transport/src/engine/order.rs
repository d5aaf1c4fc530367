//! The order and the completion of operations: fence, quiet, and the order of a signal.
//!
//! **Fence.** Targets keep the order among requests by the numbers of the requests (`acks`). For
//! other pairs of operations before and after a fence, the [order](StreamOrder) that the wire keeps
//! decides whether the later one waits:
//!
//! - a write that follows a request waits until the request is known to be carried out, unless the
//!   wire orders everything;
//! - a request, or a batch, that follows a write waits until the write is complete, unless messages
//!   arrive after the writes before them;
//! - a write that follows a write waits only where the wire's fence does not order them. Then its
//!   fence is not called.
//!
//! **Signal.** A signal is an entry after the data of its put, in the same request, or is sent
//! after the data as after a fence. A signal that follows all operations issued to its PE is in a
//! request that does so. Over a wire that orders everything, a signal that sets a flag of the
//! library is a write. Over some others a flag without data that is set to its next value is
//! written, byte by byte, while no request to its PE waits or is unacknowledged. Each byte follows
//! a fence of the wire.
//!
//! **Quiet.** A quiet sends all batches, asks for the acknowledgment of requests, flushes the wire,
//! and waits for the acknowledgments, the flushes and all answers. A wire that orders everything is
//! not flushed. A request asks for an acknowledgment, which also covers the writes before it. None
//! is sent if the data of a later get have covered them.

use super::acks::RequestOrder;
use super::origin::Origin;
use super::wire::{StreamOrder, Wire, WireNetwork};
use crate::{Error, Pe};

impl<W: Wire> Origin<W> {
    /// Waits until the writes before the last fence are complete, unless the wire keeps an order of
    /// at least `enough`.
    #[inline]
    pub(super) fn order_after_writes(&mut self, pe: Pe, enough: StreamOrder) -> Result<(), Error> {
        let must_wait = self.caps.order < enough && self.routes[pe].has_writes_before;
        if must_wait {
            self.complete_writes(pe)?;
        }
        Ok(())
    }

    /// Waits until a message to a PE may follow all writes to it, as if there were a fence.
    pub(super) fn order_after_all(&mut self, pe: Pe) -> Result<(), Error> {
        let route = &self.routes[pe];
        let has_writes = route.is_dirty || route.is_flushing || route.has_writes_before;
        let is_ordered = self.caps.order >= StreamOrder::WritesBeforeMessages;

        if has_writes && !is_ordered {
            self.complete_writes(pe)?;
        }
        Ok(())
    }

    /// Waits until all writes to a PE are complete.
    fn complete_writes(&mut self, pe: Pe) -> Result<(), Error> {
        self.begin_flush(pe)?;
        self.until(Some(pe), |origin| origin.is_flushed(pe))?;
        self.routes[pe].has_writes_before = false;
        Ok(())
    }

    /// Waits until a write to a PE may follow the requests before the last fence: until they are
    /// carried out or, over a wire that orders everything, until the wire has taken them.
    #[inline]
    pub(super) fn order_after_requests(&mut self, pe: Pe) -> Result<(), Error> {
        if self.caps.order == StreamOrder::Everything {
            return self.order_after_unsent(pe);
        }

        if self.issued.is_before_fence_done(pe) {
            return Ok(());
        }

        self.ask_for_ack(pe)?;
        self.until(Some(pe), |origin| {
            Ok(origin.issued.is_before_fence_done(pe))
        })
    }

    /// Waits until the wire has taken all numbered batches, if the wire carries operations out in
    /// the order in which it has taken them.
    #[inline]
    pub(super) fn order_after_unsent(&mut self, pe: Pe) -> Result<(), Error> {
        if self.caps.order == StreamOrder::Everything && !self.unsent.is_empty() {
            self.until(Some(pe), |origin| Ok(origin.unsent.is_empty()))?;
        }
        Ok(())
    }

    /// Asks a PE to acknowledge all requests to it and, over a wire that orders everything, all
    /// writes, unless it was asked already. The batch for the PE asks, if there is one, otherwise
    /// an empty request.
    fn ask_for_ack(&mut self, pe: Pe) -> Result<(), Error> {
        self.batcher.mark_asked();
        if self.batcher.has_any(pe) {
            self.send_batch(pe, RequestOrder::Asking)
        } else if self.issued.must_ask(pe) || self.has_uncovered_writes(pe) {
            self.send_question(pe)
        } else {
            Ok(())
        }
    }

    /// Returns true if the wire orders everything, and nothing that is answered has followed the
    /// last write to a PE.
    fn has_uncovered_writes(&self, pe: Pe) -> bool {
        self.caps.order == StreamOrder::Everything && self.routes[pe].is_dirty
    }

    /// Records that the acknowledgment of a new request to a PE, or the data of a get that is over,
    /// cover the writes before it, if the wire orders everything.
    #[inline]
    pub(super) fn cover_writes(&mut self, pe: Pe) {
        if self.caps.order == StreamOrder::Everything {
            self.routes[pe].is_dirty = false;
        }
    }

    /// Begins to complete all operations to a PE: requests an acknowledgment, and begins a flush.
    fn begin_quiet(&mut self, pe: Pe) -> Result<(), Error> {
        self.ask_for_ack(pe)?;
        self.begin_flush(pe)
    }

    /// Sends the batch for a PE, and begins a flush if there were writes since the last one. Over a
    /// wire that orders everything, a request takes the place of the flush.
    fn begin_flush(&mut self, pe: Pe) -> Result<(), Error> {
        self.send_open_batch(pe)?;
        if self.caps.order == StreamOrder::Everything {
            return Ok(());
        }

        // Cleared before the flush begins: writes from now on are not covered by it, and set the
        // mark again.
        let route = &mut self.routes[pe];
        if !std::mem::take(&mut route.is_dirty) {
            return Ok(());
        }

        route.is_flushing = true;
        self.wire.begin_flush(&self.network, pe)
    }

    /// Returns true if nothing is in flight to a PE on the wire, and its flush has ended.
    fn is_flushed(&mut self, pe: Pe) -> Result<bool, Error> {
        let awaits_ack = self.caps.order == StreamOrder::Everything
            && (self.routes[pe].is_dirty || self.issued.unacked(pe) > 0);
        let is_flushed = !awaits_ack && self.wire.is_flushed(&self.network, pe)?;
        if is_flushed {
            self.routes[pe].is_flushing = false;
        }
        Ok(is_flushed)
    }

    /// Returns true if nothing is in flight to a PE and no answer from it is awaited, after its
    /// flush has begun.
    fn is_idle(&mut self, pe: Pe) -> Result<bool, Error> {
        let is_unsent = self.unsent.iter().any(|unsent| unsent.pe == pe);
        Ok(!is_unsent && self.routes[pe].unanswered == 0 && self.is_flushed(pe)?)
    }

    /// Marks a PE to which nothing is in flight as not active. The caller removes it from the list.
    fn deactivate(&mut self, pe: Pe) {
        let route = &mut self.routes[pe];
        route.is_active = false;
        route.has_writes_before = false;
    }

    /// Waits until the sources of all puts to a PE, or to all PEs, may be reused. Batches are
    /// copies.
    pub(super) fn free_sources(&mut self, pe: Option<Pe>) -> Result<(), Error> {
        self.network.local().loss.check()?;

        // None of the waits issues an operation, so no PE is added to the list meanwhile.
        for i in 0..self.active.len() {
            let active = self.active[i];
            if pe.is_none_or(|pe| pe == active) {
                self.until(Some(active), |origin| {
                    origin.wire.are_sources_free(&origin.network, active)
                })?;
            }
        }
        self.network.local().loss.check()
    }

    /// Completes all operations to one PE.
    pub(super) fn pe_quiet(&mut self, pe: Pe) -> Result<(), Error> {
        self.network.local().loss.check()?;
        if pe.index() >= self.routes.n_pes() {
            return Err(Error::Unreachable(pe));
        }

        if self.batcher.uses_proxies(&*self.network.local().host) {
            // Batches for other PEs may contain operations on this one.
            return self.quiet();
        }

        if self.routes[pe].is_active || self.issued.awaits_ack_of(pe) {
            self.begin_quiet(pe)?;
            self.await_quiet(pe)?;
            self.active.retain(|&other| other != pe);
        }
        self.network.local().loss.check()
    }

    /// Waits until the operations to a PE that [`begin_quiet`](Self::begin_quiet) flushed are
    /// complete. Afterwards no acknowledgment of the PE is awaited; the caller removes the PE from
    /// the active ones.
    fn await_quiet(&mut self, pe: Pe) -> Result<(), Error> {
        let flushes_by_message = self.routes[pe].is_flushing && !self.caps.flushes_free;
        let has_own_message = self.issued.unacked(pe) > 0 || flushes_by_message;

        self.until(Some(pe), |origin| {
            Ok(origin.issued.unacked(pe) == 0 && origin.is_idle(pe)?)
        })?;

        if has_own_message && self.batches {
            // Otherwise the next operation would be sent alone after the time of the wait, and a
            // loop of an operation and a quiet would send two messages for each operation.
            self.batcher.mark_busy();
        }

        self.deactivate(pe);
        self.issued.mark_acked(pe);
        Ok(())
    }

    /// Completes all operations.
    pub(super) fn quiet(&mut self) -> Result<(), Error> {
        self.network.local().loss.check()?;

        // All PEs are asked before the first wait, so that the waits overlap. None of the waits
        // issues an operation, so no PE is added to the lists meanwhile.
        for i in 0..self.active.len() {
            self.begin_quiet(self.active[i])?;
        }
        for i in 0..self.issued.awaiting_ack().len() {
            self.ask_for_ack(self.issued.awaiting_ack()[i])?;
        }

        while let Some(&pe) = self.active.last() {
            self.await_quiet(pe)?;
            self.active.pop();
        }

        // Each call removes its PE from the list.
        while let Some(&pe) = self.issued.awaiting_ack().last() {
            self.await_quiet(pe)?;
        }
        self.network.local().loss.check()
    }

    /// Returns true if all operations are complete. Begins to complete those that are not, unless
    /// the window of requests to a PE is full: a program may repeat the test between operations
    /// that are batched. Acknowledgments that make room in the window were requested before.
    pub(super) fn is_quiet(&mut self) -> Result<bool, Error> {
        for i in 0..self.active.len() {
            let pe = self.active[i];
            if !self.issued.is_full(pe) {
                self.begin_quiet(pe)?;
            }
        }

        for i in 0..self.issued.awaiting_ack().len() {
            let pe = self.issued.awaiting_ack()[i];
            if !self.issued.is_full(pe) {
                self.ask_for_ack(pe)?;
            }
        }

        self.advance(true)?;
        if !self.is_complete() {
            return Ok(false);
        }

        while let Some(&pe) = self.issued.awaiting_ack().last() {
            self.issued.mark_acked(pe);
        }
        Ok(true)
    }

    /// Returns true if all operations are complete, as far as this origin was polled.
    pub(super) fn is_complete(&self) -> bool {
        let mut awaiting_ack = self.issued.awaiting_ack().iter();
        let is_acked = awaiting_ack.all(|&pe| self.issued.unacked(pe) == 0);
        // `must_be_polled` does not tell this: a wire that other threads poll may have operations
        // in flight although the origin need not be polled.
        is_acked && self.active.is_empty() && !self.waits_to_send()
    }

    /// Returns the PEs with incomplete operations, each with an estimate of their number. Begins to
    /// complete them if there is room.
    pub(super) fn in_flight_by_pe(&mut self) -> Result<Vec<(Pe, u64)>, Error> {
        let awaiting_ack = self.issued.awaiting_ack().iter();
        let mut pes: Vec<Pe> = self.active.iter().chain(awaiting_ack).copied().collect();
        pes.sort_unstable();
        pes.dedup();

        // The test for quiet starts at most a message and a flush for each PE.
        let room = self.caps.max_in_flight.saturating_sub(self.in_flight());
        let has_room = 2 * pes.len() < room && !pes.iter().any(|pe| self.issued.is_full(*pe));
        if has_room && self.is_quiet()? {
            return Ok(Vec::new());
        }

        let mut found = Vec::new();
        for pe in pes {
            let route = &self.routes[pe];
            let of_wire = self.wire.in_flight_to(pe) as u64 + u64::from(route.unanswered);
            let unacked = u64::from(self.issued.unacked(pe));

            // A request may be in flight on the wire and unacknowledged, so the numbers are not
            // added. An active PE without either has a flush that has not ended.
            let at_least = u64::from(route.is_active);
            let n = of_wire.max(unacked).max(at_least);
            if n > 0 {
                found.push((pe, n));
            }
        }
        Ok(found)
    }

    /// Orders later operations after those issued before, for each PE.
    pub(super) fn fence(&mut self) -> Result<(), Error> {
        self.network.local().loss.check()?;
        if self.batcher.uses_proxies(&*self.network.local().host) {
            // An operation on a PE may be in a request to its proxy, which has an order of its own.
            return self.quiet();
        }

        self.send_open_batches()?;
        self.issued.fence();

        let mut has_writes = false;
        for &pe in &self.active {
            let route = &mut self.routes[pe];
            route.has_writes_before |= route.is_dirty || route.is_flushing;
            has_writes |= route.has_writes_before;
        }

        let calls_fence = match self.caps.order {
            StreamOrder::Unordered => false,
            // The wire may hold back requests, which its fence sends.
            StreamOrder::Everything => true,
            StreamOrder::WritesByFence | StreamOrder::WritesBeforeMessages => has_writes,
        };

        if calls_fence {
            self.fence_wire()?;
        }
        Ok(())
    }

    /// Has the wire order later writes after those issued before.
    pub(super) fn fence_wire(&mut self) -> Result<(), Error> {
        if !self.wire.fence(&self.network)? {
            self.until(None, |origin| origin.wire.fence(&origin.network))?;
        }
        Ok(())
    }

    /// Makes progress without waiting: sends batches, polls the wire and, if `flush`, begins to
    /// flush writes. Removes PEs whose operations are complete from the active ones. Returns true
    /// if the poll found work.
    pub(super) fn advance(&mut self, flush: bool) -> Result<bool, Error> {
        self.try_send_open_batches()?;
        let worked = self.progress()?;

        // From the last one, since `swap_remove` moves the last one into the gap.
        for i in (0..self.active.len()).rev() {
            if self.in_flight() >= self.caps.max_in_flight {
                break;
            }

            let pe = self.active[i];
            if self.batcher.has_any(pe) || !flush && self.routes[pe].is_dirty {
                continue;
            }

            self.begin_flush(pe)?;
            if self.is_idle(pe)? {
                self.deactivate(pe);
                self.active.swap_remove(i);
            }
        }

        Ok(worked)
    }
}
