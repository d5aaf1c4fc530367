//! When an origin sends its open batches: to make room, before an operation that must not overtake
//! them, in a poll, and at the begin and the end of a session.

use super::acks::RequestOrder;
use super::batching::EntrySize;
use super::origin::Origin;
use super::wire::Wire;
use crate::{Error, Pe};

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

    /// Connects to a PE, and makes room in its batch for entries of this size, if they fit none at
    /// present.
    #[inline]
    pub(super) fn make_room(&mut self, pe: Pe, size: EntrySize) -> Result<(), Error> {
        self.reach(pe)?;
        if self.batcher.has_room(pe, size) {
            Ok(())
        } else {
            self.send_open_batch(pe)
        }
    }

    /// Sends the batch for a PE, if it is not empty.
    #[inline]
    pub(super) fn send_open_batch(&mut self, pe: Pe) -> Result<(), Error> {
        if self.batcher.has_any(pe) {
            self.send_batch(pe, RequestOrder::AfterFence)
        } else {
            Ok(())
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

    /// Sends the batches for all PEs as far as this needs no wait, for the service thread, which
    /// has found that the owner issues operations. While the owner adds to the batches of a
    /// session, most polls send nothing.
    pub(super) fn send_old_batches(&mut self) {
        if !self.batcher.skip_poll() {
            // This fails only after a loss, which the owner's next call reports.
            let _ = self.try_send_open_batches();
        }
    }
}
