//! Requests to the targets' CPUs (`kit::requests`): their order among themselves and with writes,
//! and their acknowledgments.
#![allow(unsafe_code)]

use super::OfiEndpoint;
use crate::message::{Data, Message, NO_DATA};
use rushmem_transport::kit::message::Request;
use rushmem_transport::kit::stream::Update;
use rushmem_transport::kit::wait::Attempt;
use rushmem_transport::{Amos, Error, Follows, Pe, Put, RemoteAddr, SignalUpdate};
use std::sync::atomic::Ordering;

/// How a request is sent.
#[derive(Clone, Copy, Default)]
pub(super) struct How {
    /// It is carried out after all before it.
    pub(super) ordered: bool,
    /// The target acknowledges it, which is after all before it, too.
    pub(super) asks: bool,
    /// The call waits for the reply.
    pub(super) awaited: bool,
}

impl OfiEndpoint {
    /// Orders what is issued to a PE from now on after what was issued to it before. Requests are
    /// carried out some time after they have arrived; and unless the provider keeps the order,
    /// writes complete at the target at any time.
    pub(crate) fn begin_fence(&mut self) {
        if self.issued.any_owing() || !self.shared().keeps_order() {
            self.issued.fence();
        }
    }

    /// Waits until a write that follows the last fence may begin towards a PE.
    #[inline(always)]
    pub(crate) fn follow(&mut self, pe: Pe) -> Result<(), Error> {
        if self.is_past_fence(pe) { self.follow_fence(pe) } else { Ok(()) }
    }

    #[inline(never)]
    fn follow_fence(&mut self, pe: Pe) -> Result<(), Error> {
        if pe.index() >= self.shared().peers.n_pes() {
            return Err(Error::Unreachable(pe));
        }
        self.follow_writes(pe)?;
        if !self.issued.is_before_fence_done(pe) {
            self.ask_for_ack(pe)?;
            self.await_ack(pe, |this| this.issued.is_before_fence_done(pe))?;
        }
        self.followed[pe] = self.issued.fences();
        Ok(())
    }

    /// Waits until a request that follows the last fence may follow the writes before it. Among
    /// themselves requests have an order.
    pub(super) fn follow_writes(&mut self, pe: Pe) -> Result<(), Error> {
        if self.is_past_fence(pe)
            && !self.shared().keeps_order()
            && self.shared().peers.known(pe).is_some()
        {
            self.delivered(pe)?;
        }
        Ok(())
    }

    /// All that was issued is complete, so nothing needs to follow the fences up to now.
    pub(crate) fn settle(&mut self) {
        self.settled = self.issued.fences();
    }

    /// Whether something follows a fence that nothing to this PE has followed.
    #[inline(always)]
    pub(crate) fn is_past_fence(&self, pe: Pe) -> bool {
        self.issued.fences() != self.settled && self.is_past_fence_of(pe)
    }

    #[inline(never)]
    fn is_past_fence_of(&self, pe: Pe) -> bool {
        self.followed.get(pe).copied().unwrap_or(0) != self.issued.fences()
    }

    /// Waits until a PE has acknowledged enough.
    fn await_ack(
        &mut self,
        pe: Pe,
        mut is_enough: impl FnMut(&mut OfiEndpoint) -> bool,
    ) -> Result<(), Error> {
        if is_enough(self) {
            return Ok(());
        }
        self.awaits_ack = true;
        let waited = self.wait_for(Some(pe.0), |this| match is_enough(this) {
            true => Ok(Attempt::Done(())),
            false => this.poll_ep(),
        });
        self.awaits_ack = false;
        waited
    }

    /// Requests an acknowledgment of all requests to a PE, unless one is on its way.
    pub(crate) fn ask_for_ack(&mut self, pe: Pe) -> Result<(), Error> {
        match self.issued.must_ask(pe) {
            true => self.send(pe, None, NO_DATA, None, How { asks: true, ..How::default() }),
            false => Ok(()),
        }
    }

    /// The same of all PEs.
    pub(crate) fn ask_for_acks(&mut self) -> Result<(), Error> {
        for i in 0..self.issued.owing().len() {
            self.ask_for_ack(self.issued.owing()[i])?;
        }
        Ok(())
    }

    /// Waits until a PE has carried out all requests.
    pub(crate) fn carried_out(&mut self, pe: Pe) -> Result<(), Error> {
        self.ask_for_ack(pe)?;
        self.await_ack(pe, |this| this.issued.unacked(pe) == 0)?;
        self.issued.settle(pe);
        Ok(())
    }

    /// Waits until all PEs have carried out all requests.
    pub(crate) fn all_carried_out(&mut self) -> Result<(), Error> {
        self.ask_for_acks()?;
        while let Some(&pe) = self.issued.owing().last() {
            self.carried_out(pe)?;
        }
        Ok(())
    }

    /// Sends a request as the next of its stream.
    pub(super) fn send(
        &mut self,
        pe: Pe,
        update: Option<Update>,
        (dest, data): (RemoteAddr, Data),
        slot: Option<u32>,
        How { ordered, asks, awaited }: How,
    ) -> Result<(), Error> {
        if !asks && self.issued.is_full(pe) {
            self.shared().state.count_retry();
            self.await_ack(pe, |this| !this.issued.is_full(pe))?;
        }
        let shared = &self.progress.shared;
        let at = shared.peers.get(pe)?.at;
        let place = self.issued.issue(pe, (ordered, asks));
        let (stream, ack) = (self.issued.stream(shared.me), shared.acks.for_message_to(pe));
        let request = Request { stream, place, ack, slot, update, dest };
        let message = Message::Request(request, data).encode(shared.tag);
        self.ep.requests.fetch_add(1, Ordering::Relaxed);
        self.start(pe.0, awaited, |ep| ep.send(pe.0, at, &message))
    }

    /// Starts a put of a few bytes, or of none, and the update that signals it as one message;
    /// returns whether it could be done so.
    ///
    /// # Safety
    /// The source is valid for reads.
    pub(crate) unsafe fn start_put_signal(
        &mut self,
        pe: Pe,
        put: &Put,
        signal: &SignalUpdate,
    ) -> Result<bool, Error> {
        if self.shared().amos == Amos::Network || pe == self.shared().me {
            return Ok(false);
        }
        // SAFETY: valid by contract.
        let Some(data) = (unsafe { Data::copy(put.source) }) else { return Ok(false) };
        self.shared().check(pe, put.dest, put.source.nbytes)?;
        self.start_signal(pe, signal, (put.dest, data)).map(|()| true)
    }

    /// Starts the update of a signal of another PE's that this PE's CPU does not carry out itself.
    pub(crate) fn start_signal(
        &mut self,
        pe: Pe,
        signal: &SignalUpdate,
        data: (RemoteAddr, Data),
    ) -> Result<(), Error> {
        let ordered = signal.follows == Follows::All;
        let keeps_order = self.shared().keeps_order();
        match ordered && !keeps_order {
            true => self.delivered(pe)?,
            false => self.follow_writes(pe)?,
        }
        let how = How { ordered, ..How::default() };
        self.send(pe, Some(Update::of(&signal.amo())), data, None, how)
    }
}
