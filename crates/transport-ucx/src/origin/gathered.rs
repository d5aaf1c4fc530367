//! Small operations that are gathered to travel together (`kit::gather`), where processors move
//! the data. A NIC that does by itself what they ask for is faster than the target's CPU, so where
//! there is one nothing is gathered.
#![allow(unsafe_code)]

use super::Origin;
use super::requests::MessageParts;
use crate::shared::SharedState;
use crate::target::BATCH_KIND;
use rushmem_transport::kit::batch::MAX_NBYTES;
use rushmem_transport::kit::gather::SmallOperation;
use rushmem_transport::{Error, Pe, Segment};

impl Origin {
    /// Whether an operation on a segment that moves `nbytes` bytes is gathered unless it is a lone
    /// one. One on the library's own flags never is, since a thread waits for it.
    #[inline]
    pub(super) fn may_gather(&self, segment: Segment, nbytes: usize) -> bool {
        nbytes <= MAX_NBYTES && segment != Segment::Internal && self.worker.copies()
    }

    /// Operations are gathered that were not sent.
    pub(crate) fn has_gathered(&self) -> bool {
        !self.gather.pes().is_empty()
    }

    /// Gathers operations for a PE that is connected and touched.
    ///
    /// # Safety
    /// The sources of puts are valid for reads; what is fetched is valid for writes until the
    /// operation is complete.
    #[inline]
    pub(super) unsafe fn gather(
        &mut self,
        shared: &SharedState,
        pe: Pe,
        operations: &[SmallOperation],
    ) -> Result<(), Error> {
        if !self.gather.has_room(pe, operations) {
            self.send_batch(shared, pe)?;
        }
        // SAFETY: the same contract; what waits for answers is forgotten after a loss.
        unsafe { self.gather.add(pe, operations) };
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

    fn send_batch(&mut self, shared: &SharedState, pe: Pe) -> Result<(), Error> {
        let parts = MessageParts { kind: BATCH_KIND, ..MessageParts::EMPTY };
        // SAFETY: the batch is kept until it is sent, and what it fetches is valid by contract.
        unsafe { self.send(shared, pe, parts) }?;
        self.gather.has_left();
        Ok(())
    }
}
