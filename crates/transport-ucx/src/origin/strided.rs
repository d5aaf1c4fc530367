//! Strided blocks, which travel in one message if small operations are gathered.
#![allow(unsafe_code)]

use super::Origin;
use super::transfers::TransferKind;
use crate::shared::SharedState;
use rushmem_transport::kit::gather::SmallOperation;
use rushmem_transport::{Error, LocalAccess, Pe, StridedBlocks};

impl Origin {
    /// Puts blocks, or starts to get them.
    ///
    /// # Safety
    /// Every block is valid for reads or, until the next quiet, for writes.
    pub(crate) unsafe fn transfer_strided(
        &mut self,
        shared: &SharedState,
        pe: Pe,
        kind: TransferKind,
        blocks: StridedBlocks,
    ) -> Result<(), Error> {
        let is_put = kind == TransferKind::Put;
        let (segment, nbytes) = (blocks.remote.segment, blocks.local.nbytes);
        let at_once = self.gather.most_blocks(nbytes);
        let may_gather = self.may_gather_transfer(pe, kind, segment, nbytes);
        if at_once < 2 || blocks.n < 2 || !may_gather {
            for (at, local) in blocks.each() {
                // SAFETY: a block, valid by contract.
                unsafe { self.transfer(shared, pe, kind, at, local) }?;
            }
            return Ok(());
        }
        shared.peers.get(pe)?.address(pe, blocks.remote, blocks.remote_nbytes())?;
        let access = if is_put { LocalAccess::Read } else { LocalAccess::Write };
        shared.loss.check_memory(access, blocks.local_range())?;
        let proxy = self.gather.proxy(&*shared.host, pe, &[segment]);
        let (_, connection) = self.connection(shared, proxy.pe)?;
        if is_put {
            self.touch(proxy.pe);
            self.follow_puts(shared, proxy.pe, &connection, false)?;
        }
        for part in blocks.in_parts(at_once) {
            // A wait of another part may have found nothing more to do.
            self.touch(proxy.pe);
            let operation = match is_put {
                true => SmallOperation::PutStrided(part),
                false => SmallOperation::GetStrided(part),
            };
            // SAFETY: valid by contract.
            unsafe { self.gather(shared, proxy, &[operation]) }?;
        }
        Ok(())
    }
}
