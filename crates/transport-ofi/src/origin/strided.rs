//! Strided blocks, which travel in one message if small operations are gathered.
#![allow(unsafe_code)]

use super::OfiEndpoint;
use rushmem_transport::kit::gather::{SmallOperation, is_small};
use rushmem_transport::{Error, LocalAccess, Pe, StridedBlocks};

impl OfiEndpoint {
    /// Gathers puts of blocks; whether it did.
    ///
    /// # Safety
    /// Every block is valid for reads.
    pub(crate) unsafe fn gather_put_strided(
        &mut self,
        pe: Pe,
        blocks: StridedBlocks,
    ) -> Result<bool, Error> {
        // As in `gather_put`, a put that follows a fence after a write is a write.
        let written = self.written.get(pe).copied().unwrap_or(0);
        let Some(at_once) = self.most_blocks(pe, &blocks) else { return Ok(false) };
        if written != 0 && written != self.n_fences {
            return Ok(false);
        }
        self.shared().check(pe, blocks.remote, blocks.remote_nbytes())?;
        let checked = self.shared().check_memory(LocalAccess::Read, blocks.local_range());
        self.or_close(checked)?;
        self.follow_writes(pe)?;
        for part in blocks.in_parts(at_once) {
            let put = SmallOperation::PutStrided(part);
            // SAFETY: the same contract.
            unsafe { self.gather(pe, &[part.remote.segment], &[put]) }?;
        }
        if written != 0 {
            self.written[pe] = 0;
        }
        Ok(true)
    }

    /// Gathers gets of blocks; whether it did.
    ///
    /// # Safety
    /// Every block is valid for writes until the next quiet.
    pub(crate) unsafe fn gather_get_strided(
        &mut self,
        pe: Pe,
        blocks: StridedBlocks,
    ) -> Result<bool, Error> {
        let Some(at_once) = self.most_blocks(pe, &blocks) else { return Ok(false) };
        self.shared().check(pe, blocks.remote, blocks.remote_nbytes())?;
        let checked = self.shared().check_memory(LocalAccess::Write, blocks.local_range());
        self.or_close(checked)?;
        for part in blocks.in_parts(at_once) {
            let get = SmallOperation::GetStrided(part);
            // SAFETY: valid until the answers are stored by contract, or forgotten after a loss.
            unsafe { self.gather(pe, &[part.remote.segment], &[get]) }?;
        }
        Ok(true)
    }

    /// Returns how many blocks of another PE travel in one message, if they do.
    fn most_blocks(&self, pe: Pe, blocks: &StridedBlocks) -> Option<usize> {
        let nbytes = blocks.local.nbytes;
        let may_gather = self.gathers
            && pe != self.shared().me
            && nbytes > 0
            && is_small(blocks.remote.segment, nbytes)
            && blocks.n > 1;
        let most = || self.requests().gather.most_blocks(nbytes);
        may_gather.then(most).filter(|most| *most > 1)
    }
}
