//! Finding the key to a peer's memory at its first use, and to the blocks of its heap.
#![allow(unsafe_code)]

use super::OfiEndpoint;
use crate::ep::Remote;
use rushmem_transport::kit::heap_blocks::{self, ENTRY, HeapBlock};
use rushmem_transport::{Completion, Error, Get, LocalBuf, Pe, RemoteAddr, Segment};
use std::sync::Arc;

impl OfiEndpoint {
    /// The start of a range at an address of a peer, as the fabric has it, and how many bytes of
    /// the range the same key covers.
    ///
    /// # Errors
    /// When the range is not in the peer's segment, or not registered.
    #[cold]
    #[inline(never)]
    pub(crate) fn part(
        &mut self,
        pe: Pe,
        at: RemoteAddr,
        nbytes: usize,
    ) -> Result<(Remote, usize), Error> {
        let progress = Arc::clone(&self.progress);
        let shared = &progress.shared;
        shared.check(pe, at, nbytes)?;
        if let Some(remote) = shared.known_remote(pe, at, nbytes) {
            return Ok((remote, nbytes));
        }
        let peer = shared.peers.get(pe)?;
        loop {
            let block = peer.blocks.block(at.offset);
            let first = (block.index == 0).then_some(&peer.keys[at.segment as usize]);
            if let Some(key) = first.or_else(|| peer.blocks.get(block)) {
                let address = key.base.wrapping_add(at.offset - block.start);
                let remote = Remote { pe: pe.0, at: peer.at, address, key: key.key };
                return Ok((remote, nbytes.min((block.end - at.offset) as usize)));
            }
            let internal = peer.nbytes(Segment::Internal);
            let entry = self.read_entry(pe, block, internal)?;
            peer.learn(&shared.fabric, pe, block, &entry)?;
        }
    }

    /// Works as [`part`](Self::part), for a word, which one key covers.
    pub(crate) fn word(&mut self, pe: Pe, at: RemoteAddr, nbytes: usize) -> Result<Remote, Error> {
        match self.shared().known_remote(pe, at, nbytes) {
            Some(remote) => Ok(remote),
            None => self.part(pe, at, nbytes).map(|(remote, _)| remote),
        }
    }

    /// Reads the entry of a block from the table of a PE whose internal segment has this many
    /// bytes.
    fn read_entry(
        &mut self,
        pe: Pe,
        block: HeapBlock,
        internal_bytes: u64,
    ) -> Result<[u8; ENTRY], Error> {
        let damaged = || rushmem_transport::kit::peers::damaged(pe, "table of keys");
        let source = heap_blocks::entry(block, internal_bytes).ok_or_else(damaged)?;
        let mut entry = [0; ENTRY];
        let dest = LocalBuf { base: entry.as_mut_ptr(), nbytes: ENTRY };
        let get = Get { dest, source, completion: Completion::Now };
        // SAFETY: a local that lives until the get has completed, or the ep is closed after a loss.
        if !unsafe { self.start_get(pe, &get) }? {
            self.completed(pe)?;
        }
        Ok(entry)
    }
}
