//! Small operations that travel together (`kit::batching`), where processors move the data. A NIC
//! that does by itself what they ask for is faster than the target's CPU, so there operations are
//! batched in sessions alone: throughput counts in a session, and a CPU takes operations out of a
//! message at a higher rate than a NIC takes requests.
#![allow(unsafe_code)]

use super::requests::RequestParts;
use super::state::Origin;
use super::wire::{StreamOrder, Wire, WireNetwork};
use crate::kit::batching::SmallOperation;
use crate::{Error, Fault, LocalAccess, LocalBuf, Pe, Segment};

impl<W: Wire> Origin<W> {
    /// Checks the ends of the local memory of a long transfer that CPUs of this process move, where
    /// a fault would end it by a signal. A NIC reports a fault.
    #[inline]
    pub(super) fn check_memory(
        &self,
        network: &W::Network,
        access: LocalAccess,
        memory: LocalBuf,
    ) -> Result<(), Error> {
        if memory.nbytes <= Fault::LONG { Ok(()) } else { self.check_long(network, access, memory) }
    }

    #[cold]
    #[inline(never)]
    fn check_long(
        &self,
        network: &W::Network,
        access: LocalAccess,
        memory: LocalBuf,
    ) -> Result<(), Error> {
        if !self.caps.copies && !self.batcher.in_session() {
            return Ok(());
        }
        let fault = Fault::at_ends(access, memory);
        fault.map_or(Ok(()), |fault| Err(network.local().loss.of_memory(fault)))
    }

    /// Begins or ends a session of one of its contexts.
    pub(super) fn session(&mut self, network: &W::Network, is_open: bool) -> Result<(), Error> {
        self.quiet(network)?;
        if self.caps.sessions {
            self.batcher.session(is_open);
            self.batches = self.caps.batches || self.batcher.in_session();
            if !self.batcher.in_session() {
                self.wire.end_session();
            }
        }
        Ok(())
    }

    /// Batches operations on these segments of a PE for it or its proxy. If they `write`, they
    /// follow the writes before the last fence.
    ///
    /// # Safety
    /// The sources of puts are valid for reads; what is fetched is valid for writes until the
    /// operation is complete.
    #[inline]
    pub(super) unsafe fn batch(
        &mut self,
        network: &W::Network,
        pe: Pe,
        segments: &[Segment],
        operations: &[SmallOperation],
        write: bool,
    ) -> Result<(), Error> {
        let proxy = self.batcher.proxy(&*network.local().host, pe, segments);
        self.reach(network, proxy.pe)?;
        self.activate(proxy.pe);
        if write {
            self.order_after_writes(network, proxy.pe, StreamOrder::WritesBeforeMessages)?;
        }
        if !self.batcher.has_room(proxy.pe, operations) {
            self.send_open_batch(network, proxy.pe)?;
            // A wait may have found nothing more to do.
            self.activate(proxy.pe);
        }
        // SAFETY: the same contract; what waits for answers is forgotten after a loss.
        unsafe { self.batcher.add(proxy, operations) };
        Ok(())
    }

    /// Sends what is batched for a PE.
    #[inline]
    pub(super) fn send_open_batch(&mut self, network: &W::Network, pe: Pe) -> Result<(), Error> {
        match self.batcher.has_any(pe) {
            true => self.send_batch(network, pe, RequestParts::BATCH),
            false => Ok(()),
        }
    }

    /// Sends what is batched for any PE.
    #[inline]
    pub(super) fn send_open_batches(&mut self, network: &W::Network) -> Result<(), Error> {
        while let Some(&pe) = self.batcher.pes().last() {
            self.send_open_batch(network, pe)?;
        }
        Ok(())
    }

    /// Issues what is batched for any PE, as far as that needs no wait, while the owner is not in a
    /// call.
    pub(super) fn try_send_open_batches(&mut self, network: &W::Network) -> Result<(), Error> {
        for i in (0..self.batcher.pes().len()).rev() {
            self.try_send_batch(network, self.batcher.pes()[i])?;
        }
        if self.unsent.is_empty() { Ok(()) } else { self.send_unsent(network) }
    }

    /// Issues what is batched for any PE, as far as that needs no wait, unless the owner, which
    /// goes on, will do so soon. The owner reports a loss itself.
    pub(super) fn send_old_batches(&mut self, network: &W::Network) {
        if !self.batcher.may_stay() {
            let _ = self.try_send_open_batches(network);
        }
    }
}
