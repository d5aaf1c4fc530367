//! Requests to the targets' CPUs (`kit::requests`): their order among themselves and with writes,
//! and their acknowledgments.
#![allow(unsafe_code)]

use super::OfiEndpoint;
use crate::message::Message;
use crate::replies::Answer;
use crate::requests::How;
use rushmem_transport::kit::batch::MAX_NBYTES;
use rushmem_transport::kit::gather::{Answers, SmallOperation};
use rushmem_transport::kit::message::Request;
use rushmem_transport::kit::stream::Update;
use rushmem_transport::kit::wait::Attempt;
use rushmem_transport::{Amos, Error, Follows, LocalAccess, Pe, Proxy, Put, Segment, SignalUpdate};
use std::ptr::null_mut;

impl OfiEndpoint {
    /// Orders what is issued to a PE from now on after what was issued to it before. Requests are
    /// carried out some time after they have arrived; and unless the provider keeps the order,
    /// writes complete at the target at any time.
    pub(crate) fn begin_fence(&mut self) -> Result<(), Error> {
        self.send_all_gathered(How::default())?;
        self.n_fences = self.n_fences.wrapping_add(1);
        let mut requests = self.requests();
        if requests.issued.any_owing() || !self.shared().keeps_order() {
            requests.issued.fence();
            drop(requests);
            self.fences = self.fences.wrapping_add(1);
        }
        Ok(())
    }

    /// Begins or ends a session.
    pub(crate) fn begin_session(&mut self, is_open: bool) {
        self.in_session = is_open;
        self.requests().gather.session(is_open);
    }

    /// Returns true if something that is ordered or completed towards a PE must be so towards all.
    pub(crate) fn uses_proxies(&self) -> bool {
        self.in_session && self.shared().host.has_proxies()
    }

    /// Gathers operations on these segments of a PE of the job, unless they are lone ones or those
    /// of the library itself, for which a PE waits; whether it did.
    ///
    /// # Safety
    /// As [`Gather::add`](rushmem_transport::kit::gather::Gather::add).
    #[inline]
    pub(super) unsafe fn gather(
        &mut self,
        pe: Pe,
        segments: &[Segment],
        operations: &[SmallOperation],
    ) -> Result<bool, Error> {
        if !self.gathers || segments.contains(&Segment::Internal) {
            return Ok(false);
        }
        let proxy = self.proxy(pe, segments)?;
        loop {
            let mut requests = self.requests();
            if operations.iter().all(SmallOperation::may_be_lone) && requests.gather.is_lone(pe) {
                return Ok(false);
            }
            if requests.gather.has_room(proxy.pe, operations) {
                // SAFETY: by contract.
                unsafe { requests.gather.add(proxy, operations) };
                self.shared().note(&self.ep);
                return Ok(true);
            }
            drop(requests);
            self.send_gathered(proxy.pe, How::default())?;
        }
    }

    /// For whom an operation on these segments of a PE is gathered: a PE whose address is known.
    #[inline]
    fn proxy(&self, pe: Pe, segments: &[Segment]) -> Result<Proxy, Error> {
        if !self.in_session {
            return Ok(Proxy::itself(pe));
        }
        let proxy = self.requests().gather.proxy(&*self.shared().host, pe, segments);
        self.shared().peers.get(proxy.pe).map(|_| proxy)
    }

    /// Sends operations to a PE with what is gathered for it, or after that if there is no room.
    ///
    /// # Safety
    /// As [`Gather::add`](rushmem_transport::kit::gather::Gather::add).
    unsafe fn send_with_gathered(
        &mut self,
        pe: Pe,
        operations: &[SmallOperation],
        how: How,
    ) -> Result<(), Error> {
        let mut requests = self.requests();
        if !requests.gather.has_room(pe, operations) {
            drop(requests);
            self.send_gathered(pe, How::default())?;
            requests = self.requests();
        }
        // SAFETY: by contract.
        unsafe { requests.gather.add(Proxy::itself(pe), operations) };
        // Under the same lock: a thread that polls would send it without an order.
        let taken = requests.take(pe);
        drop(requests);
        self.send_batch(pe, taken, how)
    }

    /// Sends what is gathered for a PE; whether that is anything.
    #[inline]
    pub(super) fn send_gathered(&mut self, pe: Pe, how: How) -> Result<bool, Error> {
        let mut requests = self.requests();
        if !requests.gather.has_any(pe) {
            return Ok(false);
        }
        let taken = requests.take(pe);
        drop(requests);
        self.send_batch(pe, taken, how).map(|()| true)
    }

    fn send_batch(
        &mut self,
        pe: Pe,
        (batch, answers): (Vec<u8>, Answers),
        how: How,
    ) -> Result<(), Error> {
        let slot = match answers.is_empty() {
            true => None,
            false => Some(self.slot(pe, Answer::Batch(answers))?),
        };
        self.send(pe, None, &batch, slot, how)?;
        self.small_has_left();
        Ok(())
    }

    /// A batch or a lone operation has left.
    #[inline]
    pub(super) fn small_has_left(&self) {
        if self.gathers {
            self.requests().gather.has_left();
        }
    }

    /// Sends what is gathered for all PEs.
    fn send_all_gathered(&mut self, how: How) -> Result<(), Error> {
        loop {
            let pe = self.requests().gather.pes().last().copied();
            let Some(pe) = pe else { return Ok(()) };
            self.send_gathered(pe, how)?;
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
        if !self.requests().issued.is_before_fence_done(pe) {
            self.ask_for_ack(pe)?;
            self.await_ack(pe, |this| this.requests().issued.is_before_fence_done(pe))?;
        }
        self.followed[pe] = self.fences;
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
        self.settled = self.fences;
    }

    /// Returns true if something follows a fence that nothing to this PE has followed.
    #[inline(always)]
    pub(crate) fn is_past_fence(&self, pe: Pe) -> bool {
        self.fences != self.settled && self.is_past_fence_of(pe)
    }

    #[inline(never)]
    fn is_past_fence_of(&self, pe: Pe) -> bool {
        self.followed.get(pe).copied().unwrap_or(0) != self.fences
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
        let how = How { asks: true, ..How::default() };
        if !self.send_gathered(pe, how)? && self.requests().issued.must_ask(pe) {
            self.send(pe, None, &[], None, how)?;
        }
        Ok(())
    }

    /// The same of all PEs.
    pub(crate) fn ask_for_acks(&mut self) -> Result<(), Error> {
        self.send_all_gathered(How { asks: true, ..How::default() })?;
        for i in 0.. {
            let pe = self.requests().issued.owing().get(i).copied();
            let Some(pe) = pe else { break };
            self.ask_for_ack(pe)?;
        }
        Ok(())
    }

    /// Waits until a PE has carried out all requests.
    pub(crate) fn carried_out(&mut self, pe: Pe) -> Result<(), Error> {
        self.ask_for_ack(pe)?;
        self.await_ack(pe, |this| this.requests().issued.unacked(pe) == 0)?;
        self.requests().issued.settle(pe);
        Ok(())
    }

    /// Waits until all PEs have carried out all requests.
    pub(crate) fn all_carried_out(&mut self) -> Result<(), Error> {
        self.ask_for_acks()?;
        loop {
            let pe = self.requests().issued.owing().last().copied();
            let Some(pe) = pe else { return Ok(()) };
            self.carried_out(pe)?;
        }
    }

    /// Sends a request as the next of its stream.
    pub(super) fn send(
        &mut self,
        pe: Pe,
        update: Option<Update>,
        batch: &[u8],
        slot: Option<u32>,
        how: How,
    ) -> Result<(), Error> {
        self.await_window(pe, how)?;
        let shared = &self.progress.shared;
        let at = shared.peers.get(pe)?.at;
        let request = shared.issue(&mut self.requests(), pe, update, slot, how);
        let head = Message::Request(request).encode(shared.tag);
        self.start(pe.0, how.awaited, |ep| ep.send(pe.0, at, &head, batch))
    }

    /// Waits until there may be one more request to a PE.
    fn await_window(&mut self, pe: Pe, how: How) -> Result<(), Error> {
        if !how.asks && self.requests().issued.is_full(pe) {
            self.shared().state.count_retry();
            self.await_ack(pe, |this| !this.requests().issued.is_full(pe))?;
        }
        Ok(())
    }

    /// Sends data and the update that signals them as one request, the next of its stream; returns
    /// whether the data are free already.
    ///
    /// # Safety
    /// The source is valid for reads until it is free: then, or when
    /// [`completed`](Self::completed) or the next quiet returns.
    unsafe fn send_data(
        &mut self,
        pe: Pe,
        &Put { dest, source, .. }: &Put,
        update: Update,
        how: How,
    ) -> Result<bool, Error> {
        let checked = self.shared().check_memory(LocalAccess::Read, source);
        self.or_close(checked)?;
        self.await_window(pe, how)?;
        let shared = &self.progress.shared;
        let at = shared.peers.get(pe)?.at;
        let request = shared.issue(&mut self.requests(), pe, Some(update), None, how);
        let head = Message::Data(Request { dest, ..request }).encode(shared.tag);
        let mut is_free = false;
        self.start(pe.0, false, |ep| {
            is_free = ep.copies_data(source.nbytes);
            // SAFETY: the same contract.
            unsafe { ep.send_data(pe.0, at, &head, source) }
        })?;
        Ok(is_free)
    }

    /// The longest put that travels in a message with its signal: where a NIC would write it, a
    /// word; where a long message costs more than a write, what a batch takes.
    fn longest_with_signal(&self) -> usize {
        match (self.gathers, self.shared().fabric.facts.takes_data()) {
            (true, true) => self.shared().tuning.longest_data().max(MAX_NBYTES),
            (true, false) => MAX_NBYTES,
            (false, _) => 8,
        }
    }

    /// Starts a put that is not long, or of nothing, and the update that signals it together;
    /// returns whether the source is free already, or `None` if it could not be done so.
    ///
    /// # Safety
    /// The source is valid for reads until it is free: then, or when
    /// [`completed`](Self::completed) or the next quiet returns.
    pub(crate) unsafe fn start_put_signal(
        &mut self,
        pe: Pe,
        put: &Put,
        signal: &SignalUpdate,
    ) -> Result<Option<bool>, Error> {
        if self.shared().amos == Amos::Network || pe == self.shared().me {
            return Ok(None);
        }
        if put.source.nbytes > self.longest_with_signal() {
            return Ok(None);
        }
        self.shared().check(pe, put.dest, put.source.nbytes)?;
        let ordered = self.follow_for(pe, signal)?;
        let update = Update::of(&signal.amo());
        if put.source.nbytes > MAX_NBYTES {
            self.send_gathered(pe, How::default())?;
            let how = How { ordered, ..How::default() };
            // SAFETY: the same contract.
            return unsafe { self.send_data(pe, put, update, how) }.map(Some);
        }
        let data = SmallOperation::Put(put.dest, put.source);
        let both = [data, SmallOperation::Amo(update, null_mut())];
        let segments = [put.dest.segment, signal.dest.segment];
        let is_alone = usize::from(put.source.nbytes == 0);
        let (operations, segments) = (&both[is_alone..], &segments[is_alone..]);
        // SAFETY: valid by contract, and nothing is fetched.
        if ordered || !unsafe { self.gather(pe, segments, operations) }? {
            // SAFETY: the same.
            unsafe { self.send_with_gathered(pe, operations, How { ordered, ..How::default() }) }?;
        }
        Ok(Some(true))
    }

    /// Waits until the update of a signal may be sent; whether it is carried out after all before
    /// it.
    fn follow_for(&mut self, pe: Pe, signal: &SignalUpdate) -> Result<bool, Error> {
        let ordered = signal.follows == Follows::All;
        if ordered && self.uses_proxies() {
            self.complete()?;
        }
        match ordered && !self.shared().keeps_order() {
            true => self.delivered(pe)?,
            false => self.follow_writes(pe)?,
        }
        Ok(ordered)
    }

    /// Starts the update of a signal of another PE's that this PE's CPU does not carry out itself.
    pub(crate) fn start_signal(&mut self, pe: Pe, signal: &SignalUpdate) -> Result<(), Error> {
        let ordered = self.follow_for(pe, signal)?;
        if ordered {
            self.send_gathered(pe, How::default())?;
        }
        let how = How { ordered, ..How::default() };
        self.send(pe, Some(Update::of(&signal.amo())), &[], None, how)
    }
}
