//! Small operations that travel together (`kit::gather`), where processors move the data. A NIC
//! that does by itself what they ask for is faster than the target's CPU, so there operations are
//! gathered in sessions alone: throughput counts in a session, and a CPU takes operations out of a
//! message at a higher rate than a NIC takes requests.
#![allow(unsafe_code)]

use super::requests::RequestParts;
use super::state::Origin;
use super::wire::{Wire, WireNetwork};
use crate::kit::gather::SmallOperation;
use crate::{Error, LocalAccess, LocalBuf, Pe, Segment};

impl<W: Wire> Origin<W> {
    /// Returns true if small operations are gathered, unless they are lone ones.
    #[inline]
    pub(super) fn may_batch(&self) -> bool {
        self.caps.batches || self.gather.in_session()
    }

    /// Checks the local memory of a long transfer, unless a NIC accesses it, which reports a fault.
    #[inline]
    pub(super) fn check_memory(
        &self,
        network: &W::Network,
        access: LocalAccess,
        memory: LocalBuf,
    ) -> Result<(), Error> {
        match self.caps.copies || self.gather.in_session() {
            true => network.local().loss.check_memory(access, memory),
            false => Ok(()),
        }
    }

    /// A context of this origin begins or ends a session.
    pub(super) fn session(&mut self, network: &W::Network, is_open: bool) -> Result<(), Error> {
        self.quiet(network)?;
        if self.caps.sessions {
            self.gather.session(is_open);
            if !self.gather.in_session() {
                self.wire.end_session();
            }
        }
        Ok(())
    }

    /// Gathers operations on these segments of a PE for it or its proxy. If they `write`, they
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
        let proxy = self.gather.proxy(&*network.local().host, pe, segments);
        self.reach(network, proxy.pe)?;
        self.activate(proxy.pe);
        if write {
            self.order_after_writes(network, proxy.pe, self.caps.orders_messages)?;
        }
        if !self.gather.has_room(proxy.pe, operations) {
            self.send_gathered(network, proxy.pe)?;
            // A wait may have found nothing more to do.
            self.activate(proxy.pe);
        }
        // SAFETY: the same contract; what waits for answers is forgotten after a loss.
        unsafe { self.gather.add(proxy, operations) };
        Ok(())
    }

    /// Sends what is gathered for a PE.
    #[inline]
    pub(super) fn send_gathered(&mut self, network: &W::Network, pe: Pe) -> Result<(), Error> {
        match self.gather.has_any(pe) {
            true => self.send_batch(network, pe, RequestParts::BATCH),
            false => Ok(()),
        }
    }

    /// Sends what is gathered for any PE.
    #[inline]
    pub(super) fn send_all_gathered(&mut self, network: &W::Network) -> Result<(), Error> {
        while let Some(&pe) = self.gather.pes().last() {
            self.send_gathered(network, pe)?;
        }
        Ok(())
    }

    /// While the owner is elsewhere: issues what is gathered for any PE, as far as that needs no
    /// wait.
    pub(super) fn try_send_all_gathered(&mut self, network: &W::Network) -> Result<(), Error> {
        for i in (0..self.gather.pes().len()).rev() {
            self.try_send_batch(network, self.gather.pes()[i])?;
        }
        if self.unsent.is_empty() { Ok(()) } else { self.send_unsent(network) }
    }

    /// Issues what is gathered for any PE, as far as that needs no wait, unless the owner, which
    /// goes on, will do so soon. The owner reports a loss itself.
    pub(super) fn send_old_gathered(&mut self, network: &W::Network) {
        if !self.gather.may_stay() {
            let _ = self.try_send_all_gathered(network);
        }
    }
}
