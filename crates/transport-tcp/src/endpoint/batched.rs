//! The functions with which an endpoint batches the operations of a session.
//!
//! Each of the first functions batches the operation of a verb, if it is small and no thread waits
//! for it, and otherwise sends what is to leave ahead of it; it returns whether it did the former.
#![allow(unsafe_code)]

use super::{Route, TcpEndpoint};
use crate::session::AckRequest;
use rushmem_transport::kit::batching::{SmallOperation, is_small};
use rushmem_transport::kit::pe_map::PeMap;
use rushmem_transport::kit::stream::Update;
use rushmem_transport::{
    AmoRequest, Completion, Endpoint, Error, Follows, Get, OldValue, Pe, Put, Segment,
    SignalUpdate, StridedBlocks,
};
use std::ptr::null_mut;

impl TcpEndpoint {
    /// # Safety
    /// The source is valid for reads.
    #[inline(never)]
    pub(super) unsafe fn batch_put(&mut self, pe: Pe, put: &Put) -> Result<bool, Error> {
        let &Put { dest, source, .. } = put;
        if source.nbytes == 0 || !is_small(dest.segment, source.nbytes) {
            return self.send_open_batch(pe, AckRequest::Omitted).map(|()| false);
        }
        self.check(pe, dest, source.nbytes)?;
        let put = SmallOperation::Put(dest, source);
        // SAFETY: valid by contract, and nothing is fetched.
        unsafe { self.batch(pe, &[dest.segment], &[put]) }.map(|()| true)
    }

    /// # Safety
    /// The destination is valid for writes until the get is complete.
    #[inline(never)]
    pub(super) unsafe fn batch_get(&mut self, pe: Pe, get: &Get) -> Result<bool, Error> {
        let &Get { dest, source, completion } = get;
        if completion == Completion::Now {
            return self.send_open_batches(AckRequest::Omitted).map(|()| false);
        }
        if dest.nbytes == 0 || !is_small(source.segment, dest.nbytes) {
            return self.send_open_batch(pe, AckRequest::Omitted).map(|()| false);
        }
        let get = SmallOperation::Get(source, dest);
        // SAFETY: valid by contract.
        unsafe { self.batch(pe, &[source.segment], &[get]) }.map(|()| true)
    }

    /// # Safety
    /// If the request names a destination of the old value, that is valid for writes of a word
    /// until the operation is complete.
    #[inline(never)]
    pub(super) unsafe fn batch_amo(&mut self, pe: Pe, request: &AmoRequest) -> Result<bool, Error> {
        let fetched = match request.old {
            OldValue::Returned => {
                return self.send_open_batches(AckRequest::Omitted).map(|()| false);
            }
            OldValue::AtQuiet(to) => to,
            OldValue::Ignored => null_mut(),
        };
        let segment = request.dest.segment;
        if !is_small(segment, 0) {
            return self.send_open_batch(pe, AckRequest::Omitted).map(|()| false);
        }
        let amo = SmallOperation::Amo(Update::of(request), fetched);
        // SAFETY: valid by contract.
        unsafe { self.batch(pe, &[segment], &[amo]) }.map(|()| true)
    }

    /// # Safety
    /// The source of the put is valid for reads.
    #[inline(never)]
    pub(super) unsafe fn batch_put_signal(
        &mut self,
        pe: Pe,
        put: &Put,
        signal: &SignalUpdate,
    ) -> Result<bool, Error> {
        let &Put { dest, source, .. } = put;
        let follows_all = signal.follows == Follows::All;
        if follows_all && self.uses_proxies() {
            return self.quiet().map(|()| false);
        }
        let are_small = is_small(dest.segment, source.nbytes) && is_small(signal.dest.segment, 0);
        if follows_all || !are_small {
            return self.send_open_batch(pe, AckRequest::Omitted).map(|()| false);
        }
        self.check(pe, dest, source.nbytes)?;
        let amo = SmallOperation::Amo(Update::of(&signal.amo()), null_mut());
        let both = [SmallOperation::Put(dest, source), amo];
        let segments = [dest.segment, signal.dest.segment];
        let first = usize::from(source.nbytes == 0);
        // SAFETY: valid by contract, and nothing is fetched.
        unsafe { self.batch(pe, &segments[first..], &both[first..]) }.map(|()| true)
    }

    /// Batches the blocks of a put or get: `operation` makes one operation of a part of them.
    /// Returns true if it has batched them.
    ///
    /// # Safety
    /// Every block is valid for reads or, until the next quiet, for writes.
    pub(super) unsafe fn batch_strided(
        &mut self,
        pe: Pe,
        blocks: &StridedBlocks,
        operation: fn(StridedBlocks) -> SmallOperation,
    ) -> Result<bool, Error> {
        let (segment, nbytes) = (blocks.remote.segment, blocks.local.nbytes);
        let Some(session) = &self.session else { return Ok(false) };
        let at_once = session.lock().batcher.most_blocks(nbytes);
        if self.is_own(pe) || nbytes == 0 || !is_small(segment, nbytes) || at_once < 2 {
            return Ok(false);
        }
        self.check(pe, blocks.remote, blocks.remote_nbytes())?;
        for part in blocks.in_parts(at_once) {
            // SAFETY: valid by contract.
            unsafe { self.batch(pe, &[segment], &[operation(part)]) }?;
        }
        Ok(true)
    }

    /// Batches operations on these segments of a PE for its proxy.
    ///
    /// # Safety
    /// The sources of puts are valid for reads; what is fetched is valid for writes until the
    /// operation is complete.
    unsafe fn batch(
        &mut self,
        pe: Pe,
        segments: &[Segment],
        operations: &[SmallOperation],
    ) -> Result<(), Error> {
        let mut is_reached = false;
        loop {
            let Some(session) = &self.session else { return Ok(()) };
            let shared = &self.progress.shared;
            if let Err(error) = shared.loss.check() {
                self.abandon();
                return Err(error);
            }
            let mut batches = session.lock();
            know(&mut self.routes, &mut self.active, batches.take_sent());
            let proxy = batches.batcher.proxy(&*shared.host, pe, segments);
            is_reached |= batches.batcher.has_any(proxy.pe) || self.routes[proxy.pe].last != 0;
            if is_reached && batches.batcher.has_room(proxy.pe, operations) {
                // SAFETY: the same contract; after an error what waits for answers is forgotten.
                unsafe { batches.batcher.add(proxy, operations) };
                if batches.list() {
                    shared.add_session(session);
                }
                return Ok(());
            }
            drop(batches);
            if !is_reached {
                self.towards = Some(proxy.pe);
                self.wait_for(|shared| Ok(shared.reach(proxy.pe)?.then_some(())))?;
                is_reached = true;
            } else {
                self.send_open_batch(proxy.pe, AckRequest::Omitted)?;
            }
        }
    }

    /// Returns true if what is ordered or completed towards a PE must be so towards all.
    pub(super) fn uses_proxies(&self) -> bool {
        self.session.is_some() && self.shared().host.has_proxies()
    }

    /// Sends what is batched for a PE.
    pub(super) fn send_open_batch(&mut self, pe: Pe, ack: AckRequest) -> Result<(), Error> {
        let Some(session) = self.session.clone() else { return Ok(()) };
        if session.lock().batcher.has_any(pe) {
            self.until(pe, |connection, shared| {
                let is_sent = session.lock().send(pe, connection, &shared.tuning, ack)?;
                if !is_sent {
                    shared.state.count_retry();
                    connection.receive(&shared.segments, &shared.buffers)?;
                }
                Ok(is_sent.then_some(()))
            })?;
        }
        self.know_sent();
        Ok(())
    }

    /// Sends what is batched for any PE.
    pub(super) fn send_open_batches(&mut self, ack: AckRequest) -> Result<(), Error> {
        let last = |this: &TcpEndpoint| {
            this.session.as_ref().and_then(|session| session.lock().batcher.pes().last().copied())
        };
        while let Some(pe) = last(self) {
            self.send_open_batch(pe, ack)?;
        }
        // Others may have sent all of it.
        self.know_sent();
        Ok(())
    }

    /// Works as [`send_open_batches`](Self::send_open_batches) as far as there is room, with a
    /// request for acknowledgments. Returns true if nothing is left.
    pub(super) fn try_send_open_batches(&mut self) -> Result<bool, Error> {
        let Some(session) = self.session.clone() else { return Ok(true) };
        let pes = session.lock().batcher.pes().to_vec();
        let mut is_sent = true;
        for pe in pes {
            is_sent &= self.with_link(pe, |connection, shared| {
                session.lock().send(pe, connection, &shared.tuning, AckRequest::Included)
            })?;
        }
        self.know_sent();
        Ok(is_sent)
    }

    /// Takes the batches that were sent for requests of its own.
    fn know_sent(&mut self) {
        if let Some(session) = &self.session {
            know(&mut self.routes, &mut self.active, session.lock().take_sent());
        }
    }

    /// Adds an operation to each PE for which some are batched and nothing was sent.
    pub(super) fn add_batched(&self, in_flight: &mut Vec<(Pe, u64)>) {
        let Some(session) = &self.session else { return };
        for &pe in session.lock().batcher.pes() {
            if in_flight.iter().all(|(other, _)| *other != pe) {
                in_flight.push((pe, 1));
            }
        }
    }

    /// Drops batched operations that were not sent, after an error. Batches that were sent are
    /// requests of this endpoint.
    pub(super) fn forget_batched(&mut self) {
        if let Some(session) = &self.session {
            let mut batches = session.lock();
            batches.batcher.forget();
            know(&mut self.routes, &mut self.active, batches.take_sent());
        }
    }
}

/// Batches that were sent are requests like others. One that another thread has sent may be older
/// than the last request.
fn know(routes: &mut PeMap<Route>, active: &mut Vec<Pe>, sent: impl Iterator<Item = (Pe, u64)>) {
    for (pe, seq) in sent {
        let last = &mut routes[pe].last;
        if *last == 0 {
            active.push(pe);
        }
        *last = seq.max(*last);
    }
}
