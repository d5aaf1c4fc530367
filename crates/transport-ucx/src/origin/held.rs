//! Small puts that no thread waits for, held back to travel together: where UCX moves data by the
//! processors, one message costs as much as a hundred of them.
//!
//! They leave when they fill a message, ahead of anything else to their PE, with a fence or a
//! quiet, and when the service thread flushes.
#![allow(unsafe_code)]

use super::Origin;
use super::requests::MessageParts;
use crate::proto::batch;
use crate::shared::SharedState;
use crate::target::PUTS_KIND;
use rushmem_transport::{Error, LocalBuf, Pe, RemoteAddr, mem};

/// Bytes of a message from which on it leaves: with its headers it fits one piece of UCX's.
const FULL: usize = 4096;

impl Origin {
    /// Whether a put that no thread waits for is held back.
    pub(super) fn may_hold(&self, nbytes: usize) -> bool {
        nbytes <= batch::MAX_NBYTES && self.worker.copies()
    }

    /// Something is held back.
    pub(crate) fn holds(&self) -> bool {
        self.touched.iter().any(|&pe| !self.routes[Pe(pe)].held.is_empty())
    }

    /// Holds a put back.
    ///
    /// # Safety
    /// The local memory is valid for reads.
    pub(super) unsafe fn hold(
        &mut self,
        shared: &SharedState,
        pe: Pe,
        at: RemoteAddr,
        local: LocalBuf,
    ) -> Result<(), Error> {
        let held = &mut self.routes[pe].held;
        let copy = batch::append(held, at, local.nbytes).as_mut_ptr();
        // SAFETY: as many bytes, valid by contract and just made.
        unsafe {
            mem::copy_bytes::<mem::VolatileLoads>(copy, local.base.cast_const(), local.nbytes)
        };
        match held.len() < FULL {
            true => Ok(()),
            false => self.send_held(shared, pe),
        }
    }

    /// Sends what is held back for a PE.
    #[inline]
    pub(super) fn send_held(&mut self, shared: &SharedState, pe: Pe) -> Result<(), Error> {
        match self.routes[pe].held.is_empty() {
            true => Ok(()),
            false => self.send_batch(shared, pe),
        }
    }

    fn send_batch(&mut self, shared: &SharedState, pe: Pe) -> Result<(), Error> {
        let parts = MessageParts { kind: PUTS_KIND, ..MessageParts::EMPTY };
        // SAFETY: the puts are kept until they are sent, and nothing is fetched.
        unsafe { self.send(shared, pe, parts) }.map(|_| ())
    }
}
