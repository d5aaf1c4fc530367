//! Small operations that are gathered to travel together (`kit::gather`), where processors move
//! the data. A NIC that does by itself what they ask for is faster than the target's CPU, so where
//! there is one operations are gathered in sessions alone: throughput counts there, and a CPU takes
//! operations out of a message at a higher rate than a NIC takes requests.
#![allow(unsafe_code)]

use super::Origin;
use super::requests::MessageParts;
use crate::shared::SharedState;
use crate::target::BATCH_KIND;
use rushmem_transport::kit::gather::{SmallOperation, is_small};
use rushmem_transport::{Error, Pe, Proxy, Segment};

impl Origin {
    /// Returns true if an operation on a segment that moves `nbytes` bytes is gathered unless it is
    /// a lone one.
    #[inline]
    pub(super) fn may_gather(&self, segment: Segment, nbytes: usize) -> bool {
        is_small(segment, nbytes) && (self.worker.copies() || self.gather.in_session())
    }

    /// Operations are gathered that were not sent.
    pub(crate) fn has_gathered(&self) -> bool {
        !self.gather.pes().is_empty()
    }

    /// A context of this origin begins or ends a session.
    pub(crate) fn session(&mut self, shared: &SharedState, is_open: bool) -> Result<(), Error> {
        self.quiet(shared)?;
        self.gather.session(is_open);
        if !self.gather.in_session() {
            self.pending.free_batches();
        }
        Ok(())
    }

    /// Gathers operations for a proxy that is connected and touched.
    ///
    /// # Safety
    /// The sources of puts are valid for reads; what is fetched is valid for writes until the
    /// operation is complete.
    #[inline]
    pub(super) unsafe fn gather(
        &mut self,
        shared: &SharedState,
        proxy: Proxy,
        operations: &[SmallOperation],
    ) -> Result<(), Error> {
        if !self.gather.has_room(proxy.pe, operations) {
            self.send_batch(shared, proxy.pe)?;
        }
        // SAFETY: the same contract; what waits for answers is forgotten after a loss.
        unsafe { self.gather.add(proxy, operations) };
        Ok(())
    }

    /// Sends what is gathered for a PE.
    #[inline]
    pub(super) fn send_gathered(&mut self, shared: &SharedState, pe: Pe) -> Result<(), Error> {
        match self.gather.has_any(pe) {
            true => self.send_batch(shared, pe),
            false => Ok(()),
        }
    }

    /// Sends what is gathered for any PE.
    #[inline]
    pub(crate) fn send_all_gathered(&mut self, shared: &SharedState) -> Result<(), Error> {
        while let Some(&pe) = self.gather.pes().last() {
            self.send_batch(shared, pe)?;
        }
        Ok(())
    }

    /// The same while the owner goes on, unless it will do so soon. It reports a loss itself.
    pub(crate) fn send_old_gathered(&mut self, shared: &SharedState) {
        if !self.gather.may_stay() {
            let _ = self.send_all_gathered(shared);
        }
    }

    fn send_batch(&mut self, shared: &SharedState, pe: Pe) -> Result<(), Error> {
        let parts = MessageParts { kind: BATCH_KIND, ..MessageParts::EMPTY };
        // SAFETY: the batch is kept until it is sent, and what it fetches is valid by contract.
        unsafe { self.send(shared, pe, parts) }?;
        self.gather.has_left();
        Ok(())
    }
}
