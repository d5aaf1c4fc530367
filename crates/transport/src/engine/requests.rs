//! Requests to the CPU of a target: atomic operations, signals and batches. Also the atomic
//! operations that the network carries out itself.
//!
//! Where CPUs move the data, small operations are batched (`batching`). A NIC carries out a single
//! operation faster than the target's CPU, so over a NIC they are batched only in sessions, where
//! throughput counts: a CPU takes operations out of a batch at a higher rate than a NIC takes
//! requests.
#![allow(unsafe_code)]

use super::batch::MAX_NBYTES;
use super::batching::{SmallOperation, is_small};
use super::keys;
use super::message::Request;
use super::origin::{Origin, UnsentRequest};
use super::replies::Ticket;
use super::wire::{Payload, PostOutcome, StreamOrder, Wire, WireNetwork, WriteEnd, WriteSent};
use crate::{
    AmoOp, AmoRequest, AmoWidth, Completion, DestBuf, Error, Follows, Pe, Proxy, Put, RemoteAddr,
    Segment, SignalUpdate, SourceBuf, mem,
};
use std::ptr::from_ref;

/// The body of a request to send.
pub(super) enum Carried {
    /// The batch for the PE.
    Batch,
    /// Data for an address at the PE; may be empty.
    Data(SourceBuf, RemoteAddr),
}

/// The address in a request without data.
pub(super) const NOWHERE: RemoteAddr = RemoteAddr {
    segment: Segment::Heap,
    offset: 0,
};

/// The contents of a request, before it is numbered.
pub(super) struct RequestParts {
    pub(super) update: Option<AmoRequest>,
    pub(super) carried: Carried,
    /// The memory for the old value, if that is needed.
    pub(super) fetched: Option<DestBuf>,
    /// The target carries the request out after all earlier ones.
    pub(super) ordered: bool,
    /// The target acknowledges the request, and carries it out after all earlier ones.
    pub(super) asks: bool,
    /// The call waits until the data may be reused.
    pub(super) awaited: bool,
}

impl RequestParts {
    pub(super) const EMPTY: RequestParts = RequestParts {
        update: None,
        carried: Carried::Data(SourceBuf::EMPTY, NOWHERE),
        fetched: None,
        ordered: false,
        asks: false,
        awaited: false,
    };
    /// A request that sends the batch for the PE.
    pub(super) const BATCH: RequestParts = RequestParts {
        carried: Carried::Batch,
        ..RequestParts::EMPTY
    };
}

impl<W: Wire> Origin<W> {
    /// Sends a request as the next of its stream. Returns the ticket for its answer, if it has one.
    pub(super) fn send(
        &mut self,
        pe: Pe,
        parts: &mut RequestParts,
    ) -> Result<Option<Ticket>, Error> {
        self.reach(pe)?;
        self.order_after_unsent(pe)?;
        if !parts.asks && self.issued.is_full(pe) {
            self.network.local().state.count_retry();
            self.until(Some(pe), |origin| Ok(!origin.issued.is_full(pe)))?;
        }
        if self.slots.n_unanswered() >= self.caps.max_unanswered {
            let max = self.caps.max_unanswered;
            self.until(None, |origin| Ok(origin.slots.n_unanswered() < max))?;
        }
        let (mut batch, ticket) = self.fill(pe, parts);
        let request = self.issue(pe, parts, ticket);
        let mut post = |wire: &mut W, network: &W::Network| {
            let payload = match &mut parts.carried {
                Carried::Batch => Payload::Batch(&mut batch),
                Carried::Data(data, _) => Payload::Data(data),
            };
            wire.send(network, pe, &request, payload, parts.awaited)
        };
        let posted = self.post(pe, &mut post)?;
        if matches!(parts.carried, Carried::Batch) {
            self.batcher.give_back(batch);
        }
        if ticket.is_some() || self.wire.in_flight_to(pe) > 0 {
            self.activate(pe);
        }
        if parts.awaited {
            self.end(pe, posted)?;
        }
        Ok(ticket)
    }

    /// Takes the batch for a PE, if the request sends it, and a slot for the answer, if the request
    /// has one.
    fn fill(&mut self, pe: Pe, parts: &mut RequestParts) -> (Vec<u8>, Option<Ticket>) {
        let mut batch = Vec::new();
        let width = parts.update.map_or(AmoWidth::Eight, |update| update.width);
        let ticket = match parts.carried {
            Carried::Batch => self
                .slots
                .for_batch(pe, |answers| self.batcher.take(pe, &mut batch, answers)),
            Carried::Data(..) => {
                let fetched = parts.fetched.take();
                fetched.map(|word| self.slots.for_word(pe, word, width))
            }
        };
        self.routes[pe].unanswered += u32::from(ticket.is_some());
        (batch, ticket)
    }

    /// Numbers and returns the next request to a PE.
    fn issue(&mut self, pe: Pe, parts: &RequestParts, ticket: Option<Ticket>) -> Request {
        let local = self.network.local();
        Request {
            stream: self.issued.stream(local.me),
            position: self.issued.issue(pe, (parts.ordered, parts.asks)),
            ack: local.acks.for_message_to(pe),
            slot: ticket.map(Ticket::number),
            update: parts.update,
            dest: match parts.carried {
                Carried::Data(_, dest) => dest,
                Carried::Batch => NOWHERE,
            },
        }
    }

    /// Sends the batch for a PE in a request of these parts.
    pub(super) fn send_batch(&mut self, pe: Pe, mut parts: RequestParts) -> Result<(), Error> {
        self.send(pe, &mut parts)?;
        self.batcher.mark_busy();
        Ok(())
    }

    /// Sends an empty request that asks for an acknowledgment.
    pub(super) fn send_question(&mut self, pe: Pe) -> Result<(), Error> {
        let mut parts = RequestParts {
            asks: true,
            ..RequestParts::EMPTY
        };
        self.send(pe, &mut parts).map(|_| ())
    }

    /// Numbers the batch for a PE without waiting, if another request is permitted at present.
    /// [`send_unsent`](Self::send_unsent) sends it.
    pub(super) fn try_send_batch(&mut self, pe: Pe) -> Result<(), Error> {
        let is_full = self.in_flight() >= self.caps.max_in_flight
            || self.issued.is_full(pe)
            || self.slots.n_unanswered() >= self.caps.max_unanswered;
        if is_full || !self.wire.reach(&self.network, pe)? {
            return Ok(());
        }
        let mut parts = RequestParts::BATCH;
        let (batch, ticket) = self.fill(pe, &mut parts);
        let request = self.issue(pe, &parts, ticket);
        self.activate(pe);
        self.unsent.push_back(UnsentRequest { pe, request, batch });
        self.batcher.mark_busy();
        Ok(())
    }

    /// Sends numbered batches until the wire has no room.
    pub(super) fn send_unsent(&mut self) -> Result<(), Error> {
        while let Some(UnsentRequest { pe, request, batch }) = self.unsent.front_mut() {
            let payload = Payload::Batch(batch);
            let posted = self
                .wire
                .send(&self.network, *pe, request, payload, false)?;
            if matches!(posted, PostOutcome::Full) {
                return Ok(());
            }
            if let Some(sent) = self.unsent.pop_front() {
                self.batcher.give_back(sent.batch);
            }
        }
        Ok(())
    }

    /// Sends a request that is not batched, after the batch for the PE. If it is `ordered`, the
    /// target carries it out after all earlier writes and requests.
    pub(super) fn ask(
        &mut self,
        pe: Pe,
        parts: &mut RequestParts,
    ) -> Result<Option<Ticket>, Error> {
        self.send_open_batch(pe)?;
        self.order_request(pe, parts.ordered)?;
        self.send(pe, parts)
    }

    /// Waits until a request may be sent to a PE. It must follow the writes before the last fence;
    /// an `ordered` one must follow all earlier writes. If proxies may have earlier operations, an
    /// ordered one waits until all operations are complete.
    fn order_request(&mut self, pe: Pe, ordered: bool) -> Result<(), Error> {
        if ordered && self.batcher.uses_proxies(&*self.network.local().host) {
            self.quiet()
        } else if ordered {
            self.order_after_all(pe)
        } else {
            self.order_after_writes(pe, StreamOrder::WritesBeforeMessages)
        }
    }

    /// Works as [`ask`](Self::ask), for data and an update whose result no call waits for, which
    /// are added to `parts`. Small ones are batched, unless they are lone or may not be.
    #[inline(always)]
    pub(super) fn ask_nbi(
        &mut self,
        pe: Pe,
        (data, dest): (&mut SourceBuf, RemoteAddr),
        update: &AmoRequest,
        parts: &mut RequestParts,
    ) -> Result<(), Error> {
        let (nbytes, ordered) = (data.nbytes(), parts.ordered);
        let segments = [dest.segment, update.dest.segment];
        let mut both = [
            SmallOperation::Put(dest, data),
            SmallOperation::Amo(*update, &mut parts.fetched),
        ];
        let first = usize::from(nbytes == 0);
        let operations = &mut both[first..];
        let are_small = is_small(update.dest.segment, 0) && is_small(dest.segment, nbytes);
        let may_batch = !ordered && are_small && self.batches;
        let is_lone = may_batch && self.batcher.begin_lone(pe);
        if may_batch && !is_lone {
            return self.batch(pe, &segments[first..], operations, true);
        }

        if ordered && self.batcher.has_any(pe) && nbytes <= MAX_NBYTES {
            self.order_request(pe, true)?;
            if self.batcher.has_any(pe) && self.batcher.has_room(pe, operations) {
                self.batcher.add(Proxy::itself(pe), operations);
                let parts = RequestParts {
                    ordered: true,
                    ..RequestParts::BATCH
                };
                return self.send_batch(pe, parts);
            }
        }

        parts.update = Some(*update);
        parts.carried = Carried::Data(std::mem::take(data), dest);
        self.ask(pe, parts)?;
        if is_lone {
            self.batcher.mark_busy();
        }
        Ok(())
    }

    /// Puts, and updates the word of the signal. The target's CPU carries the update out. But if
    /// the wire orders everything, a signal that sets a flag of the library is a write.
    pub(super) fn put_signal(
        &mut self,
        pe: Pe,
        put: &mut Put,
        signal: &SignalUpdate,
    ) -> Result<(), Error> {
        let &mut Put {
            remote: dest,
            local: ref mut source,
            completion,
        } = put;
        let update = signal.amo();
        let ordered = signal.follows == Follows::All;
        let is_written = self.caps.order == StreamOrder::Everything
            && signal.op == AmoOp::Set
            && signal.dest.segment == Segment::Internal;
        if !is_written && source.nbytes() <= self.caps.longest_signaled {
            let awaited = completion == Completion::Now && source.nbytes() > 0;
            let mut parts = RequestParts {
                ordered,
                awaited,
                ..RequestParts::EMPTY
            };
            return self.ask_nbi(pe, (source, dest), &update, &mut parts);
        }
        if is_written {
            // Nothing may delay the flag once the data, which are sent with it, are written.
            self.send_open_batch(pe)?;
            if self.batcher.uses_proxies(&*self.network.local().host) {
                self.quiet()?;
            }
            self.order_after_unsent(pe)?;
        }
        // If messages follow writes, the acknowledgment of the signal covers the write.
        let source_free = self.caps.order >= StreamOrder::WritesBeforeMessages && self.caps.batches;
        let end = WriteEnd {
            source_free,
            sent: WriteSent::WithNext,
            ..WriteEnd::of(completion)
        };
        let posted = self.begin(pe, dest, source, end)?;
        let mut parts = RequestParts {
            update: Some(update),
            ordered,
            ..RequestParts::EMPTY
        };
        let sent = match is_written {
            true => self.write_flag(pe, signal),
            false => {
                let ordered_after = if source_free {
                    Ok(())
                } else {
                    self.order_after_all(pe)
                };
                ordered_after.and_then(|()| self.ask(pe, &mut parts).map(|_| ()))
            }
        };
        match (sent, posted) {
            (Ok(()), posted) if end.awaited => self.end(pe, posted),
            (sent, _) => sent,
        }
    }

    /// Writes a flag of the library, over a wire that keeps the order of all operations. This takes
    /// less time than a request, which is numbered and acknowledged.
    fn write_flag(
        &mut self,
        pe: Pe,
        &SignalUpdate {
            dest, ref value, ..
        }: &SignalUpdate,
    ) -> Result<(), Error> {
        // SAFETY: the value is borrowed during the call, which waits until it may be reused.
        let mut source = unsafe { SourceBuf::new(from_ref(value).cast(), size_of_val(value)) };
        let end = WriteEnd {
            sent: WriteSent::Now,
            ..WriteEnd::of(Completion::Now)
        };
        let posted = self.begin(pe, dest, &mut source, end)?;
        self.end(pe, posted)
    }

    /// Sends the batches for all PEs, and waits until the answer of a PE to a request has arrived.
    pub(super) fn answered(&mut self, pe: Pe, ticket: Option<Ticket>) -> Result<(), Error> {
        self.send_open_batches()?;
        let Some(ticket) = ticket else { return Ok(()) };
        self.until(Some(pe), |origin| Ok(origin.slots.is_past(ticket)))?;
        self.forget_idle(pe);
        Ok(())
    }

    /// Has the network carry out an atomic operation, and waits for its end if it is `awaited`.
    /// Stores the old value at `fetched`, if that is there. An operation that the network lacks is
    /// composed of its compare-and-swap, so that all operations are atomic with respect to each
    /// other.
    pub(super) fn operate(
        &mut self,
        pe: Pe,
        request: &AmoRequest,
        mut fetched: Option<DestBuf>,
        awaited: bool,
    ) -> Result<(), Error> {
        if self.batches {
            match awaited {
                true => self.send_open_batches()?,
                false => self.send_open_batch(pe)?,
            }
        }
        self.order_write(pe)?;
        if !awaited {
            self.mark_dirty(pe);
        }
        if !self.caps.amos.operations.has(request.op, request.width) {
            let old = self.swap_until_applied(pe, request)?;
            if let Some(fetched) = fetched {
                fetched.store_word(request.width, old);
            }
            return Ok(());
        }
        let mut posted = PostOutcome::Full;
        let nbytes = request.width.nbytes();
        if let Some(word) = keys::covered(&*self.network, pe, request.dest, nbytes) {
            posted = self.wire.amo(&self.network, word, request, &mut fetched)?;
        }
        if matches!(posted, PostOutcome::Full) {
            posted = self.amo_later(pe, request, fetched)?;
        }
        if awaited {
            self.end(pe, posted)
        } else {
            Ok(())
        }
    }

    /// Starts an atomic operation of the network for which there was no room at first, or whose key
    /// is missing.
    #[cold]
    #[inline(never)]
    fn amo_later(
        &mut self,
        pe: Pe,
        request: &AmoRequest,
        mut fetched: Option<DestBuf>,
    ) -> Result<PostOutcome<W::Token>, Error> {
        let nbytes = request.width.nbytes();
        self.find_keys(pe, request.dest, nbytes)?;
        self.post(pe, |wire, network| {
            let word = keys::found(network, pe, request.dest, nbytes)?;
            wire.amo(network, word, request, &mut fetched)
        })
    }

    /// Carries out an operation by compare-and-swap in a loop. Returns the old value.
    #[cold]
    #[inline(never)]
    fn swap_until_applied(&mut self, pe: Pe, request: &AmoRequest) -> Result<u64, Error> {
        // The old value is unknown. A wrong guess returns it.
        let mut guess = 0u64;
        loop {
            let mut operand = guess;
            let &AmoRequest { op, width, .. } = request;
            // SAFETY: an aligned local, whose first bytes are the word, of either width.
            unsafe {
                let word = (&raw mut operand).cast();
                mem::apply(op, width, word, request.operand, request.condition)
            };
            let op = AmoOp::CompareSwap;
            let swap = AmoRequest {
                op,
                operand,
                condition: guess,
                ..*request
            };
            // The network may write 4 of the 8 bytes.
            *self.swapped = 0;
            let word = (&raw mut *self.swapped).cast();
            // SAFETY: a word of this origin, which lives until the wire has been abandoned.
            let fetched = Some(unsafe { DestBuf::new(word, width.nbytes()) });
            let posted = self.amo_later(pe, &swap, fetched)?;
            self.end(pe, posted)?;
            let old = *self.swapped;
            if old == guess {
                return Ok(old);
            }
            guess = old;
        }
    }
}

// `swap_until_applied` takes the first 4 of 8 bytes for the word of 4 bytes with the same value.
const _: () = assert!(
    cfg!(target_endian = "little"),
    "written for little-endian machines"
);

impl<W: Wire> Origin<W> {
    /// Completes all operations, and begins or ends a session of one of the contexts.
    pub(super) fn session(&mut self, is_open: bool) -> Result<(), Error> {
        self.quiet()?;
        if self.caps.sessions {
            self.batcher.session(is_open);
            self.batches = self.caps.batches || self.batcher.in_session();
        }
        Ok(())
    }

    /// Adds operations on these segments of a PE to the batch for the PE or its proxy. Operations
    /// that `write` follow the writes before the last fence.
    #[inline]
    pub(super) fn batch(
        &mut self,
        pe: Pe,
        segments: &[Segment],
        operations: &mut [SmallOperation<'_>],
        write: bool,
    ) -> Result<(), Error> {
        let proxy = self
            .batcher
            .proxy(&*self.network.local().host, pe, segments);
        self.reach(proxy.pe)?;
        self.activate(proxy.pe);
        if write {
            self.order_after_writes(proxy.pe, StreamOrder::WritesBeforeMessages)?;
        }
        if !self.batcher.has_room(proxy.pe, operations) {
            self.send_open_batch(proxy.pe)?;
            // A quiet of another thread may have removed the PE from the active ones during a wait.
            self.activate(proxy.pe);
        }
        self.batcher.add(proxy, operations);
        Ok(())
    }

    /// Sends the batch for a PE, if it is not empty.
    #[inline]
    pub(super) fn send_open_batch(&mut self, pe: Pe) -> Result<(), Error> {
        match self.batcher.has_any(pe) {
            true => self.send_batch(pe, RequestParts::BATCH),
            false => Ok(()),
        }
    }

    /// Sends the batches for all PEs.
    #[inline]
    pub(super) fn send_open_batches(&mut self) -> Result<(), Error> {
        while let Some(&pe) = self.batcher.pes().last() {
            self.send_open_batch(pe)?;
        }
        Ok(())
    }

    /// Sends the batches for all PEs as far as this needs no wait.
    pub(super) fn try_send_open_batches(&mut self) -> Result<(), Error> {
        for i in (0..self.batcher.pes().len()).rev() {
            self.try_send_batch(self.batcher.pes()[i])?;
        }
        if self.unsent.is_empty() {
            Ok(())
        } else {
            self.send_unsent()
        }
    }

    /// Works as [`try_send_open_batches`](Self::try_send_open_batches), for the service thread,
    /// which has found that the owner issues operations. While the owner adds to the batches of a
    /// session, most polls send nothing. The owner's next call reports a loss.
    pub(super) fn send_old_batches(&mut self) {
        if !self.batcher.skip_poll() {
            let _ = self.try_send_open_batches();
        }
    }
}
