//! Starts atomic operations that the fabric carries out on an ep.
#![allow(unsafe_code)]

use super::{BufferUse, FiEndpoint, PostStatus, RmaAddress};
use crate::native;
use libfabric_sys as fi;
use rushmem_transport::{AmoOp, AmoRequest, DestBuf};

/// The size of each word in the cell of an atomic operation: the old value, the operand and the
/// condition.
const WORD: usize = size_of::<u64>();

impl FiEndpoint {
    /// Starts an atomic operation that the fabric carries out. The operation always fetches the old
    /// value, since the arrival of this value shows that it is complete. The old value is stored in
    /// `fetched`, if that is there.
    #[inline(always)]
    pub(crate) fn atomic(
        &mut self,
        to: RmaAddress,
        amo: &AmoRequest,
        fetched: Option<&DestBuf>,
    ) -> Result<PostStatus, i32> {
        let RmaAddress {
            pe,
            fi_addr,
            address,
            key,
        } = to;
        let use_ = match fetched {
            Some(fetched) => BufferUse::Landing(fetched.range().first(amo.width.nbytes())),
            None => BufferUse::Plain,
        };
        let Some(op) = self.begin(pe, use_) else {
            return self.defer(pe, fi_addr);
        };

        let cell = self.staging.cell(op).base;
        // SAFETY: `cell` is aligned to 16 bytes and has at least 64, and no other operation uses
        // the cell of `op`.
        unsafe {
            cell.cast::<[u64; 3]>()
                .write([0, amo.operand, amo.condition])
        };
        let old = word(cell, 0);
        let operand = word(cell, 1);
        let condition = word(cell, 2);

        let endpoint = self.endpoint.raw();
        let desc = self.staging_desc();
        let context = self.context(op);
        let datatype = native::datatype(amo.op, amo.width);
        let fi_op = native::fi_op(amo.op);
        let code = match amo.op {
            // SAFETY: `endpoint` is open, with atomic operations. `context` and the three words are
            // in cells of `op`, which stay its own until it completes; `desc` is the descriptor of
            // these cells.
            AmoOp::CompareSwap => unsafe {
                fi::fi_compare_atomic(
                    endpoint, operand, desc, condition, desc, old, desc, fi_addr, address, key,
                    datatype, fi_op, context,
                )
            },
            // SAFETY: the endpoint, the context, the words and `desc` are as for
            // `fi_compare_atomic`.
            _ => unsafe {
                fi::fi_fetch_atomic(
                    endpoint, operand, desc, old, desc, fi_addr, address, key, datatype, fi_op,
                    context,
                )
            },
        };
        self.begun(code, op)
    }
}

/// Returns the address of a word of a cell, as libfabric's calls take it.
fn word(cell: *mut u8, i: usize) -> *mut core::ffi::c_void {
    cell.wrapping_add(i * WORD).cast()
}
