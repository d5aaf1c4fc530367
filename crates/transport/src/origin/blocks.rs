//! The keys of a peer's heap, each of which is found at the first use of its block.
#![allow(unsafe_code)]

use super::state::Origin;
use super::wire::{Wire, WireNetwork};
use crate::kit::heap_blocks::{self, Covered, ENTRY, HeapBlock};
use crate::kit::peers::damaged;
use crate::{Completion, Error, Get, LocalBuf, Pe, RemoteAddr, Segment};

impl<W: Wire> Origin<W> {
    /// Returns how many bytes of a range in the segment of a PE that is reached one key covers,
    /// once that key was found.
    #[inline]
    pub(super) fn covered(
        &mut self,
        network: &W::Network,
        pe: Pe,
        at: RemoteAddr,
        nbytes: usize,
    ) -> Result<usize, Error> {
        loop {
            match self.wire.covered(network, pe, at, nbytes)? {
                Covered::Bytes(covered) => return Ok(covered.min(nbytes)),
                Covered::Unknown(block) => self.find_key(network, pe, block)?,
            }
        }
    }

    /// Checks a range in the segment of a PE that is reached, and finds all keys that cover it. So
    /// only a loss can end a call that has started some of its parts, and it ends these, too.
    pub(super) fn find_keys(
        &mut self,
        network: &W::Network,
        pe: Pe,
        mut at: RemoteAddr,
        mut nbytes: usize,
    ) -> Result<(), Error> {
        network.check(pe, at, nbytes)?;
        while nbytes > 0 {
            let covered = self.covered(network, pe, at, nbytes)?;
            at.offset += covered as u64;
            nbytes -= covered;
        }
        Ok(())
    }

    /// Reads the entry of a block from the table of a PE, and learns its key.
    #[cold]
    fn find_key(&mut self, network: &W::Network, pe: Pe, block: HeapBlock) -> Result<(), Error> {
        let from = heap_blocks::entry(block, network.nbytes(pe, Segment::Internal)?);
        let from = from.ok_or_else(|| damaged(pe, "table of keys"))?;
        let to = LocalBuf { base: self.entry.as_mut_ptr(), nbytes: ENTRY };
        let get = Get { dest: to, source: from, completion: Completion::Now };
        // SAFETY: memory of the origin's, which outlives its wire's use of it.
        unsafe { self.get_by_wire(network, pe, &get) }?;
        let entry = *self.entry;
        self.wire.learn(network, pe, block, &entry)
    }
}
