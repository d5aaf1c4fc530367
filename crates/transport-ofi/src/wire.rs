//! The wire of an origin over libfabric: an endpoint (ep), and the operations on it.

use crate::ep::{EpFailure, FiEndpoint, PostStatus, RmaAddress};
use crate::message::Message;
use crate::shared::{SharedState, rma_address};
use rushmem_transport::engine::entries::MAX_NBYTES;
use rushmem_transport::engine::{
    NetworkAmos, NextEvent, Polled, PolledUntil, PostOutcome, Remote, Replies, SentMessage,
    StreamOrder, TakeReply, Wire, WireCaps, WriteEnd, refuse,
};
use rushmem_transport::{AmoRequest, Amos, DestBuf, Error, Pe, SourceBuf};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// The wire of one origin.
pub(crate) struct OfiWire {
    /// `None` after a loss: the ep was closed, so that libfabric accesses no memory of callers any
    /// more.
    ep: Option<FiEndpoint>,
    /// The replies to the origin's requests, which the service receives.
    replies: Arc<Replies>,
    /// The PEs to which writes were started, since the last flush of each, that have no completion,
    /// or one that does not mean that the data are in the target's memory.
    pub(crate) unflushed: BTreeSet<Pe>,
    /// A flush was awaited since the last short write. Then one probably follows the next write,
    /// too, which is tracked, so that this flush sends no read.
    is_flush_expected: bool,
    caps: WireCaps,
}

impl OfiWire {
    pub(crate) fn new(shared: &SharedState, ep: FiEndpoint, replies: Arc<Replies>) -> OfiWire {
        let info = &shared.fabric.info;
        let tuning = &shared.tuning;
        // Over a NIC nothing is batched: it writes and reads a word faster than the target's CPU
        // carries out a request, and the buffers for messages are short.
        let batches = info.copies() && shared.local.amos == Amos::Software;
        let longest_batch = tuning.longest_batch();

        let order = if shared.keeps_order() {
            StreamOrder::WritesBeforeMessages
        } else {
            StreamOrder::Unordered
        };
        // Over sockets, a message is complete when the kernel has taken it. Other providers may
        // report the completion before they have sent the message.
        let polled = if info.sockets {
            PolledUntil::Over
        } else {
            PolledUntil::Acknowledged
        };
        let longest_signaled = if !batches {
            // Over a NIC, only a word is sent with its signal.
            8
        } else if info.takes_data() {
            tuning.longest_data().max(MAX_NBYTES)
        } else {
            // A long message costs more than a write, so it has no more bytes than an operation of
            // a batch.
            MAX_NBYTES
        };

        let caps = WireCaps {
            batches,
            lone_puts_are_requests: false,
            // Only where a thread also sees the stores of another one in their order: the thread
            // that polls stores what has arrived as plain memory, the flag after all else.
            lone_flags_are_writes: info.flushes_by_read()
                && shared.keeps_order()
                && cfg!(target_arch = "x86_64"),
            sessions: batches,
            order,
            polled,
            flushes_free: info.delivery,
            flushes_in_wait: info.delivery && !info.flushes_by_read(),
            amos: NetworkAmos {
                operations: shared.amos,
                on_flags: true,
            },
            longest_signaled,
            longest_write: tuning.max_bytes,
            longest_read: tuning.max_bytes,
            longest_batch,
            longest_session_batch: longest_batch,
            window: tuning.max_requests as u32,
            max_unanswered: tuning.max_requests,
            max_in_flight: usize::MAX,
        };
        OfiWire {
            ep: Some(ep),
            replies,
            unflushed: BTreeSet::new(),
            is_flush_expected: false,
            caps,
        }
    }

    #[cfg(test)]
    pub(crate) fn ep(&mut self) -> Option<&mut FiEndpoint> {
        self.ep.as_mut()
    }

    /// Returns the outcome of an attempt to start an operation on a PE. `if_started` is that of an
    /// operation that has started: `Done` if no call needs to wait for it, since its data were
    /// copied or are ignored.
    #[inline(always)]
    fn posted(
        &self,
        shared: &SharedState,
        pe: Pe,
        attempt: Result<PostStatus, i32>,
        if_started: PostOutcome<()>,
    ) -> Result<PostOutcome<()>, Error> {
        match attempt {
            Ok(PostStatus::Started) => Ok(if_started),
            Ok(PostStatus::Again) => Ok(PostOutcome::Full),
            Err(code) => Err(self.report_refusal(shared, pe, Some(code))),
        }
    }

    /// Starts a write without injection. `copies` says that the data are copied to a cell first.
    /// Computes the address in the peer's memory again instead of taking it as an argument: so the
    /// caller's injected path keeps it in registers.
    #[inline(never)]
    fn write_uninjected(
        &mut self,
        shared: &SharedState,
        to: &Remote<'_, SharedState>,
        source: &SourceBuf,
        copies: bool,
        source_free: bool,
    ) -> Result<PostOutcome<()>, Error> {
        let pe = to.pe;
        let address = rma_address(to);
        let Some(ep) = &mut self.ep else {
            return Err(self.report_refusal(shared, pe, None));
        };

        if copies {
            let attempt = ep.write_staged(address, source);
            return self.posted(shared, pe, attempt, PostOutcome::Done);
        }

        let known = shared.descriptor_of(source.range());
        // This call of libfabric may take long: a provider over sockets sends up to a megabyte in
        // it. Counting as a waiter makes the service thread leave the CPU to this thread meanwhile,
        // for at most a few of its sleeps.
        shared.local.state.enter_wait();
        let attempt = ep.write(address, source, known, source_free);
        shared.local.state.leave_wait();

        self.posted(shared, pe, attempt, PostOutcome::Pending(()))
    }

    /// Starts a read of a byte whose value is ignored.
    fn read_and_forget(
        &mut self,
        shared: &SharedState,
        from: RmaAddress,
    ) -> Result<PostOutcome<()>, Error> {
        let pe = Pe(from.pe);
        let Some(ep) = &mut self.ep else {
            return Err(self.report_refusal(shared, pe, None));
        };
        let attempt = ep.read_and_forget(from);
        self.posted(shared, pe, attempt, PostOutcome::Done)
    }

    /// Polls the ep. Returns the number of operations that are over.
    #[inline]
    fn poll_ep(&mut self, shared: &SharedState) -> Result<usize, EpFailure> {
        let ep = self.ep.as_mut().ok_or_else(given_up)?;
        // An origin's ep has no receives, so nothing arrives.
        let n_over = ep.poll(|_| ())?;
        if self.caps.lone_flags_are_writes {
            shared.wake_for_words();
        }
        Ok(n_over)
    }

    /// Reports a loss: an operation on a PE was refused with libfabric's `code`, or, if `None`,
    /// because the ep is closed. Returns the first loss, which may be another one.
    #[cold]
    fn report_refusal(&self, shared: &SharedState, pe: Pe, code: Option<i32>) -> Error {
        let failure = match (&self.ep, code) {
            (Some(ep), Some(code)) => EpFailure {
                pe: Some(pe.0),
                why: ep.why_refused(pe.0, code),
            },
            _ => given_up(),
        };
        shared.fail(&failure)
    }
}

/// Returns the failure of an operation on a closed ep.
fn given_up() -> EpFailure {
    EpFailure {
        pe: None,
        why: "it was given up after another loss".to_owned(),
    }
}

impl Wire for OfiWire {
    type Network = SharedState;
    /// An operation has no identity: a call that waits for one waits for all operations on its PE.
    type Token = ();

    fn caps(&self) -> WireCaps {
        self.caps
    }

    #[inline]
    fn reach(&mut self, shared: &SharedState, pe: Pe) -> Result<bool, Error> {
        shared.inserted(pe).map(|_| true)
    }

    #[inline(always)]
    fn write(
        &mut self,
        shared: &SharedState,
        to: Remote<'_, SharedState>,
        source: &mut SourceBuf,
        end: WriteEnd,
    ) -> Result<PostOutcome<()>, Error> {
        let pe = to.pe;
        if !shared.fabric.info.delivery {
            self.unflushed.insert(pe);
        }

        let Some(ep) = &mut self.ep else {
            return Err(self.report_refusal(shared, pe, None));
        };

        let copies = source.nbytes() <= shared.copy_up_to(end.awaited);
        if copies && ep.injects(source.nbytes()) {
            let is_tracked = std::mem::take(&mut self.is_flush_expected);
            if !is_tracked && let Some(attempt) = ep.write_untracked(rma_address(&to), source) {
                self.unflushed.insert(pe);
                return self.posted(shared, pe, attempt, PostOutcome::Done);
            }
            let attempt = ep.write_injected(rma_address(&to), source);
            return self.posted(shared, pe, attempt, PostOutcome::Done);
        }
        self.write_uninjected(shared, &to, source, copies, end.source_free)
    }

    #[inline(always)]
    fn read(
        &mut self,
        shared: &SharedState,
        from: Remote<'_, SharedState>,
        dest: &mut DestBuf,
        _: bool,
    ) -> Result<PostOutcome<()>, Error> {
        let pe = from.pe;
        let known = shared.descriptor_of(dest.range());
        let Some(ep) = &mut self.ep else {
            return Err(self.report_refusal(shared, pe, None));
        };
        let attempt = ep.read(rma_address(&from), dest, known);
        self.posted(shared, pe, attempt, PostOutcome::Pending(()))
    }

    #[inline(always)]
    fn amo(
        &mut self,
        shared: &SharedState,
        word: Remote<'_, SharedState>,
        request: &AmoRequest,
        fetched: &mut Option<DestBuf>,
    ) -> Result<PostOutcome<()>, Error> {
        let pe = word.pe;
        let Some(ep) = &mut self.ep else {
            return Err(self.report_refusal(shared, pe, None));
        };
        let attempt = ep.atomic(rma_address(&word), request, fetched.as_ref());
        self.posted(shared, pe, attempt, PostOutcome::Pending(()))
    }

    #[inline]
    fn send(
        &mut self,
        shared: &SharedState,
        pe: Pe,
        SentMessage {
            request,
            entries,
            attached,
            ..
        }: SentMessage<'_>,
    ) -> Result<PostOutcome<()>, Error> {
        let to = shared.inserted(pe)?.fi_addr();
        let Some(ep) = &mut self.ep else {
            return Err(self.report_refusal(shared, pe, None));
        };

        let head = Message::Request(*request).encode(shared.tag);
        let if_started = if ep.copies_data(entries.len() + attached.nbytes()) {
            PostOutcome::Done
        } else {
            PostOutcome::Pending(())
        };
        let attempt = ep.send(pe.0, to, &head, entries, attached);
        self.posted(shared, pe, attempt, if_started)
    }

    #[inline]
    fn is_over(&mut self, _: &SharedState, pe: Pe, (): &()) -> Result<bool, Error> {
        Ok(self.in_flight_to(pe) == 0)
    }

    /// Does nothing: the fabric orders writes by itself, if the wire keeps an order at all.
    fn fence(&mut self, _: &SharedState) -> Result<bool, Error> {
        Ok(true)
    }

    /// If not all writes since the last flush have completions that show that the data are in the
    /// target's memory, starts a read of a byte of it. The read follows the writes before it, so
    /// its completion shows that they have arrived.
    fn is_flushed(&mut self, shared: &SharedState, pe: Pe) -> Result<bool, Error> {
        self.is_flush_expected = true;
        if self.in_flight_to(pe) > 0 {
            return Ok(false);
        }
        if !self.unflushed.contains(&pe) {
            return Ok(true);
        }
        let Some(from) = shared.some_byte(pe) else {
            return Ok(false);
        };

        // From now on the read is what is in flight. If it did not start, the next call tries
        // again.
        if self.read_and_forget(shared, from)? == PostOutcome::Done {
            self.unflushed.remove(&pe);
        }
        Ok(false)
    }

    #[inline]
    fn in_flight(&self) -> usize {
        self.ep.as_ref().map_or(0, FiEndpoint::in_flight) as usize
    }

    #[inline]
    fn in_flight_to(&self, pe: Pe) -> usize {
        self.ep.as_ref().map_or(0, |ep| ep.pending(pe.0)) as usize
    }

    #[inline]
    fn poll(&mut self, shared: &SharedState, take: TakeReply<'_>) -> Result<Polled, Error> {
        // Replies first: taking one is cheaper than polling the ep, which can wait for the next
        // poll.
        match self.replies.take(take) {
            Ok(0) => {}
            Ok(_) => return Ok(Polled::Worked),
            Err(message) => return Err(refuse(shared, &message)),
        }

        match self.poll_ep(shared) {
            Ok(0) => Ok(Polled::Idle),
            Ok(_) => Ok(Polled::Worked),
            Err(failure) => Err(shared.fail(&failure)),
        }
    }

    fn serve(&self, shared: &SharedState) -> Result<bool, Error> {
        shared.local.state.count_poll();
        shared.poll_service()
    }

    /// If the PE is connected and nothing is in flight to it, also starts a read, which fails if
    /// the PE is gone: not every provider reports the loss of a message.
    fn confirm(&mut self, shared: &SharedState, pe: Pe) -> Result<(), Error> {
        if let Err(failure) = shared.confirm(pe) {
            return Err(shared.fail(&failure));
        }

        if let Some(ep) = &self.ep
            && ep.is_connected(pe.0)
            && ep.pending(pe.0) == 0
            && let Some(from) = shared.some_byte(pe)
        {
            self.read_and_forget(shared, from)?;
        }
        Ok(())
    }

    /// Does not sleep if preparing the sleep has completed operations of the ep.
    fn sleep(&mut self, shared: &SharedState, at_most: Duration) {
        if self.ep.is_none() {
            return;
        }
        shared.sleep_until_event(None, at_most, &mut || match self.poll_ep(shared) {
            Ok(n) => n > 0,
            Err(failure) => {
                // The next poll of this wait returns the loss.
                shared.fail(&failure);
                true
            }
        });
    }

    /// No descriptor signals the completion of an operation, so a thread must not sleep while any
    /// is in flight, unflushed or unacknowledged.
    fn arm(&self, are_unacked: bool) -> NextEvent {
        if self.in_flight() == 0 && self.unflushed.is_empty() && !are_unacked {
            NextEvent::OfNetwork
        } else {
            NextEvent::Unsignaled
        }
    }

    fn abandon(&mut self, _: &SharedState) -> Result<(), String> {
        self.ep = None;
        Ok(())
    }
}
