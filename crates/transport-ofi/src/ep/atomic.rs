//! Starting an atomic operation of the fabric's own on an ep.
#![allow(unsafe_code)]

use super::{FiEndpoint, Post, Remote, Use};
use crate::native::Amo;
use libfabric_sys as fi;
use rushmem_transport::LocalBuf;
use rushmem_transport::{AmoOp, mem};

impl FiEndpoint {
    /// Starts an atomic operation of the fabric's own. Its cell has the old value, which is asked for even where nobody
    /// wants it, since it tells that the operation is done; the operand; and the condition.
    ///
    /// # Safety
    /// `fetched` is empty, or valid for writes until the operation completes or the ep is dropped.
    pub(crate) unsafe fn atomic(
        &mut self,
        to: Remote,
        amo: &Amo,
        fetched: LocalBuf,
    ) -> Result<Post, i32> {
        let Some(&op) = self.free.last() else { return Ok(Post::Later) };
        let words = [0, amo.operand, amo.condition];
        let cell = self.staging.cell(op).skip(0).first(size_of_val(&words));
        // SAFETY: a cell has as many bytes, and is this operation's.
        unsafe { mem::copy_bytes(cell.base, words.as_ptr().cast(), cell.nbytes) };
        let ioc =
            |word: usize| fi::fi_ioc { addr: cell.skip(8 * word).first(8).base.cast(), count: 1 };
        let (mut old, operand, condition) = (ioc(0), ioc(1), ioc(2));
        let mut desc = [self.staging_desc(); 3];
        let [old_desc, operand_desc, condition_desc] = &mut desc;
        let rma = fi::fi_rma_ioc { addr: to.address, count: 1, key: to.key };
        let message = fi::fi_msg_atomic {
            msg_iov: &raw const operand,
            desc: operand_desc,
            iov_count: 1,
            addr: to.at,
            rma_iov: &raw const rma,
            rma_iov_count: 1,
            datatype: amo.datatype(),
            op: amo.name(),
            context: self.context(op),
            data: 0,
        };
        let (endpoint, flags) = (self.endpoint.raw(), fi::FI_COMPLETION);
        let code = match amo.op {
            // SAFETY: an open endpoint with atomic operations, a context that is free, and a cell and vectors
            // that are this operation's.
            AmoOp::CompareSwap => unsafe {
                fi::fi_compare_atomicmsg(
                    endpoint,
                    &message,
                    &condition,
                    condition_desc,
                    &mut old,
                    old_desc,
                    flags,
                )
            },
            // SAFETY: as above.
            _ => unsafe { fi::fi_fetch_atomicmsg(endpoint, &message, &mut old, old_desc, flags) },
        };
        self.decide(code, op, to.pe, Use::Landing(fetched))
    }
}
