//! Finding the keys to the blocks of a peer's heap, each at its first use.
#![allow(unsafe_code)]

use super::Origin;
use super::transfers::TransferKind;
use crate::proto::MemoryKey;
use crate::shared::SharedState;
use rushmem_transport::kit::heap_blocks::{self, ENTRY};
use rushmem_transport::kit::peers::damaged;
use rushmem_transport::{Error, LocalBuf, Pe, RemoteAddr, Segment};

impl Origin {
    /// Returns how many bytes of a range in a PE's segment one key covers, once that key was found.
    #[inline]
    pub(super) fn part(
        &mut self,
        shared: &SharedState,
        pe: Pe,
        at: RemoteAddr,
        nbytes: usize,
    ) -> Result<usize, Error> {
        match shared.peers.get(pe)?.is_covered(at, nbytes) {
            true => Ok(nbytes),
            false => self.block_part(shared, pe, at, nbytes),
        }
    }

    #[cold]
    fn block_part(
        &mut self,
        shared: &SharedState,
        pe: Pe,
        at: RemoteAddr,
        nbytes: usize,
    ) -> Result<usize, Error> {
        self.connection(shared, pe)?;
        loop {
            let Some(open) = &self.routes[pe].open else { return Err(Error::Unreachable(pe)) };
            let blocks = &open.endpoint.blocks;
            let block = blocks.block(at.offset);
            if block.index == 0 || blocks.get(block).is_some() {
                return Ok(nbytes.min((block.end - at.offset) as usize));
            }
            let internal = shared.peers.get(pe)?.nbytes(Segment::Internal);
            let from = heap_blocks::entry(block, internal);
            let from = from.ok_or_else(|| damaged(pe, "table of keys"))?;
            let mut entry = [0; ENTRY];
            let to = LocalBuf { base: entry.as_mut_ptr(), nbytes: ENTRY };
            // SAFETY: a local, valid until the call returns. The internal segment has one key.
            unsafe { self.transfer_part(shared, pe, TransferKind::Get, from, to) }?;
            let Some(open) = &self.routes[pe].open else { return Err(Error::Unreachable(pe)) };
            open.endpoint.blocks.learn(pe, block, &entry, |key| {
                let key = MemoryKey::decode(key).map_err(|_| damaged(pe, "key"))?;
                let unpacked = open.endpoint.unpack(self.worker.ucp(), &key.packed);
                unpacked.map_err(|why| shared.lose(pe, &format!("its memory: {why}")))
            })?;
        }
    }
}
