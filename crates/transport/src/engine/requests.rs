//! Requests to the CPU of a target. Also the atomic operations that the network carries out itself.
//!
//! A request is a list of entries, the batch for its PE (`batching`). Where CPUs move the data,
//! small operations wait in the batch for others. A NIC carries out a single operation faster than
//! the target's CPU, so over a NIC they do so only in sessions, where throughput counts: a CPU
//! takes entries out of a request at a higher rate than a NIC takes requests. An operation that may
//! not wait, or need not, is sent at once, with what the batch has.
#![allow(unsafe_code)]

use super::acks::RequestOrder;
use super::batching::{EntrySize, is_small};
use super::entries::MAX_NBYTES;
use super::keys;
use super::message::Request;
use super::origin::{NumberedRequest, Origin};
use super::replies::Ticket;
use super::wire::{PostOutcome, SentMessage, StreamOrder, Wire, WireNetwork, WriteEnd, WriteSent};
use crate::peers::check_aligned;
use crate::{
    AmoOp, AmoRequest, Completion, DestBuf, Error, Pe, Proxy, Put, SignalOrder, Source, SourceBuf,
    mem,
};

impl<W: Wire> Origin<W> {
    /// Sends the batch for a PE, which may be empty, as the next request of its stream. The first
    /// entry may attach the data of a put; waits until these may be reused if the put is to be over
    /// when its call returns. Returns the ticket for the results, if there are any.
    fn send(
        &mut self,
        pe: Pe,
        order: RequestOrder,
        put: Option<&mut Put>,
    ) -> Result<Option<Ticket>, Error> {
        self.reach(pe)?;
        self.order_after_unsent(pe)?;
        if order != RequestOrder::Asking && self.issued.is_full(pe) {
            self.network.local().state.count_retry();
            self.until(Some(pe), |origin| Ok(!origin.issued.is_full(pe)))?;
        }

        if self.slots.n_unanswered() >= self.caps.max_unanswered {
            let max = self.caps.max_unanswered;
            self.until(None, |origin| Ok(origin.slots.n_unanswered() < max))?;
        }

        let NumberedRequest {
            request,
            mut entries,
            ticket,
            ..
        } = self.number(pe, order);

        let mut attached = &mut SourceBuf::default();
        let mut awaited = false;
        if let Some(put) = put {
            awaited = put.completion == Completion::Now && put.local.nbytes() > 0;
            attached = &mut put.local;
        }

        let posted = self.post(pe, |wire, network| {
            let message = SentMessage {
                request: &request,
                entries: &mut entries,
                attached: &mut *attached,
                awaited,
            };
            wire.send(network, pe, message)
        })?;

        self.batcher.give_back(entries);

        if ticket.is_some() || self.wire.in_flight_to(pe) > 0 {
            self.activate(pe);
        }

        if awaited {
            self.await_end(pe, posted)?;
        }

        Ok(ticket)
    }

    /// Takes the batch for a PE as the next request to it, and a slot for its results, if there are
    /// any.
    fn number(&mut self, pe: Pe, order: RequestOrder) -> NumberedRequest {
        let mut entries = Vec::new();
        let ticket = self
            .slots
            .take(pe, |results| entries = self.batcher.take(pe, results));
        self.routes[pe].unanswered += u32::from(ticket.is_some());
        self.cover_writes(pe);

        let local = self.network.local();
        let request = Request {
            stream: self.issued.stream(local.me),
            position: self.issued.issue(pe, order),
            ack: local.acks.for_message_to(pe),
            slot: ticket.map(|ticket| ticket.slot),
            // No batch is longer than `MAX_ENTRIES`.
            nbytes: entries.len() as u16,
        };

        NumberedRequest {
            pe,
            request,
            entries,
            ticket,
        }
    }

    /// Sends the batch for a PE, which is not empty.
    pub(super) fn send_batch(&mut self, pe: Pe, order: RequestOrder) -> Result<(), Error> {
        self.send(pe, order, None)?;
        self.batcher.mark_busy();
        Ok(())
    }

    /// Sends a request without entries that asks for an acknowledgment.
    pub(super) fn send_question(&mut self, pe: Pe) -> Result<(), Error> {
        let order = RequestOrder::Asking;
        self.send(pe, order, None)?;
        Ok(())
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

        let request = self.number(pe, RequestOrder::AfterFence);
        self.activate(pe);
        self.unsent.push_back(request);
        self.batcher.mark_busy();
        Ok(())
    }

    /// Sends numbered batches until the wire has no room.
    pub(super) fn send_unsent(&mut self) -> Result<(), Error> {
        while let Some(NumberedRequest {
            pe,
            request,
            entries,
            ..
        }) = self.unsent.front_mut()
        {
            let message = SentMessage {
                request,
                entries,
                attached: &mut SourceBuf::default(),
                awaited: false,
            };
            let posted = self.wire.send(&self.network, *pe, message)?;
            if matches!(posted, PostOutcome::Full) {
                return Ok(());
            }

            if let Some(sent) = self.unsent.pop_front() {
                self.batcher.give_back(sent.entries);
            }
        }
        Ok(())
    }

    /// Waits until a request may be sent to a PE, or be added to its batch. It must follow the
    /// writes before the last fence; one that follows all must follow all earlier writes. If
    /// proxies may have earlier operations, the latter waits until all operations are complete.
    fn order_request(&mut self, pe: Pe, order: RequestOrder) -> Result<(), Error> {
        let follows_all = order != RequestOrder::AfterFence;
        if follows_all && self.batcher.uses_proxies(&*self.network.local().host) {
            self.quiet()
        } else if follows_all {
            self.order_after_all(pe)
        } else {
            self.order_after_writes(pe, StreamOrder::WritesBeforeMessages)
        }
    }

    /// Issues an atomic operation that the target's CPU carries out, after the data of a put, if
    /// there is one. No call waits for a result. Small ones wait in the batch, unless they are lone
    /// or may not wait.
    #[inline(always)]
    pub(super) fn update(
        &mut self,
        pe: Pe,
        mut put: Option<&mut Put>,
        amo: &AmoRequest,
        fetched: Option<DestBuf>,
        order: RequestOrder,
    ) -> Result<(), Error> {
        let are_small = is_small(amo.dest.segment, 0)
            && put
                .as_ref()
                .is_none_or(|put| is_small(put.remote.segment, put.local.nbytes()));
        let may_wait = order == RequestOrder::AfterFence && self.batches && are_small;
        if may_wait && !self.batcher.is_lone(pe) {
            let segments = [
                amo.dest.segment,
                put.as_ref()
                    .map_or(amo.dest.segment, |put| put.remote.segment),
            ];
            let host = &*self.network.local().host;
            let proxy = self.batcher.proxy(host, pe, &segments);
            self.add_update(proxy, put, amo, fetched, order)?;
            self.activate(proxy.pe);
            return Ok(());
        }

        let is_batch = may_wait || self.batcher.has_any(pe);
        self.add_update(Proxy::itself(pe), put.as_deref_mut(), amo, fetched, order)?;
        self.send(pe, order, put)?;
        if is_batch {
            self.batcher.mark_busy();
        }
        Ok(())
    }

    /// Adds an atomic operation, after the data of a put, if there is one, to the batch for a PE or
    /// its proxy. Sends the batch first if it has no room. Long data are not taken from the put:
    /// they are to be attached to the request.
    fn add_update(
        &mut self,
        to: Proxy,
        put: Option<&mut Put>,
        amo: &AmoRequest,
        fetched: Option<DestBuf>,
        order: RequestOrder,
    ) -> Result<(), Error> {
        self.order_request(to.pe, order)?;

        let mut size = EntrySize::of_amo(amo, fetched.as_ref());
        let mut attaches = false;
        if let Some(put) = &put {
            let nbytes = put.local.nbytes();
            attaches = nbytes > MAX_NBYTES;
            let copied = if attaches { 0 } else { nbytes };
            size = size.and(EntrySize::of_transfer::<Source>(copied));
        }

        if attaches {
            // The attached data are those of the first entry.
            self.send_open_batch(to.pe)?;
        }
        self.make_room(to.pe, size)?;

        let mut entries = self.batcher.open(to);
        match put {
            Some(put) if attaches => entries.attached(put.remote),
            Some(put) => entries.transfer(put.remote, std::mem::take(&mut put.local)),
            None => {}
        }

        entries.amo(amo, fetched);
        Ok(())
    }

    /// Sends an atomic operation that the target's CPU carries out. Returns the ticket for the old
    /// value, if that is fetched.
    fn send_amo(
        &mut self,
        pe: Pe,
        amo: &AmoRequest,
        fetched: Option<DestBuf>,
        order: RequestOrder,
    ) -> Result<Option<Ticket>, Error> {
        self.add_update(Proxy::itself(pe), None, amo, fetched, order)?;
        self.send(pe, order, None)
    }

    /// Has the target's CPU carry out an atomic operation, and waits for the old value.
    pub(super) fn fetch(
        &mut self,
        pe: Pe,
        amo: &AmoRequest,
        fetched: DestBuf,
    ) -> Result<(), Error> {
        let ticket = self.send_amo(pe, amo, Some(fetched), RequestOrder::AfterFence)?;
        self.send_open_batches()?;

        let Some(ticket) = ticket else { return Ok(()) };
        self.until(Some(pe), |origin| Ok(origin.slots.is_past(ticket)))?;
        self.forget_idle(pe);
        Ok(())
    }

    /// Carries out an atomic operation: the network does if it can on this segment, otherwise the
    /// target's CPU. Stores the old value at `fetched`, if that is there, before it returns if
    /// `completion` is `Now`, otherwise by the next quiet.
    pub(super) fn amo(
        &mut self,
        pe: Pe,
        request: &AmoRequest,
        fetched: Option<DestBuf>,
        completion: Completion,
    ) -> Result<(), Error> {
        check_aligned(pe, request.dest, request.width)?;
        if self.caps.amos.are_on(request.dest.segment) {
            return self.operate(pe, request, fetched, completion);
        }

        keys::check_in_segment(&*self.network, pe, request.dest, request.width.nbytes())?;
        match fetched {
            Some(fetched) if completion == Completion::Now => self.fetch(pe, request, fetched),
            fetched => self.update(pe, None, request, fetched, RequestOrder::AfterFence),
        }
    }

    /// Puts, and updates the word of a signal: the network does if it can on this segment,
    /// otherwise the target's CPU.
    pub(super) fn put_and_operate(
        &mut self,
        pe: Pe,
        put: &mut Put,
        signal: &AmoRequest,
        order: SignalOrder,
    ) -> Result<(), Error> {
        keys::check_in_segment(&*self.network, pe, signal.dest, signal.width.nbytes())?;
        if self.caps.amos.are_on(signal.dest.segment) {
            self.transfer(pe, put)?;
            // Orders the signal after the data, and after all that was issued before.
            self.fence()?;
            return self.operate(pe, signal, None, Completion::AtQuiet);
        }

        keys::check_in_segment(&*self.network, pe, put.remote, put.local.nbytes())?;
        let order = match order {
            SignalOrder::AfterData => RequestOrder::AfterFence,
            SignalOrder::AfterAll | SignalOrder::AfterAllNext => RequestOrder::AfterAll,
        };
        if put.local.nbytes() <= self.caps.longest_signaled {
            let put = Some(put).filter(|put| put.local.nbytes() > 0);
            return self.update(pe, put, signal, None, order);
        }

        // If messages follow writes, the acknowledgment of the signal covers the write.
        let source_free = self.caps.order >= StreamOrder::WritesBeforeMessages && self.caps.batches;
        let end = WriteEnd {
            awaited: put.completion == Completion::Now,
            source_free,
            sent: WriteSent::WithNext,
        };

        let posted = self.begin(pe, put.remote, &mut put.local, end)?;
        let ordered_after = if source_free {
            Ok(())
        } else {
            self.order_after_all(pe)
        };
        let sent = ordered_after.and_then(|()| self.send_amo(pe, signal, None, order));
        match sent {
            Ok(_) if end.awaited => self.await_end(pe, posted),
            sent => sent.map(|_| ()),
        }
    }

    /// Has the network carry out an atomic operation, and waits for its end if `completion` is
    /// `Now`. Stores the old value at `fetched`, if that is there. An operation that the network
    /// lacks is composed of its compare-and-swap, so that all operations are atomic with respect to
    /// each other.
    pub(super) fn operate(
        &mut self,
        pe: Pe,
        request: &AmoRequest,
        mut fetched: Option<DestBuf>,
        completion: Completion,
    ) -> Result<(), Error> {
        let awaited = completion == Completion::Now;
        if self.batches {
            if awaited {
                self.send_open_batches()?;
            } else {
                self.send_open_batch(pe)?;
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
        if let Some(word) = keys::find(&*self.network, pe, request.dest, nbytes) {
            posted = self.wire.amo(&self.network, word, request, &mut fetched)?;
        }

        if matches!(posted, PostOutcome::Full) {
            posted = self.amo_later(pe, request, fetched)?;
        }

        if awaited {
            self.await_end(pe, posted)
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
            let word = keys::require(network, pe, request.dest, nbytes)?;
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
            // SAFETY: `word` is the address of `operand`, an aligned local of 8 bytes. On these
            // little-endian machines its first bytes are the word, of either width.
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
            // SAFETY: `swapped` is a boxed word of this origin, valid for writes of either width.
            // The origin drops it after the wire, so also after the last access of the network.
            let fetched = Some(unsafe { DestBuf::new(word, width.nbytes()) });

            let posted = self.amo_later(pe, &swap, fetched)?;
            self.await_end(pe, posted)?;
            let old = *self.swapped;

            if old == guess {
                return Ok(old);
            }
            guess = old;
        }
    }
}

// `swap_until_applied`, and `fetch` of an endpoint, take the first 4 of 8 bytes for the word of 4
// bytes with the same value.
const _: () = assert!(
    cfg!(target_endian = "little"),
    "written for little-endian machines"
);
