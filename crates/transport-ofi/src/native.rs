//! Atomic operations that the fabric carries out: their numbers in libfabric, and which of them an
//! endpoint supports.
#![allow(unsafe_code)]

use crate::fabric::Fid;
use libfabric_sys as fi;
use rushmem_transport::{AmoOp, AmoSet, AmoWidth};

/// Returns libfabric's number of an operation.
pub(crate) fn fi_op(op: AmoOp) -> fi::fi_op {
    match op {
        AmoOp::Fetch => fi::FI_ATOMIC_READ,
        AmoOp::Set | AmoOp::Swap => fi::FI_ATOMIC_WRITE,
        AmoOp::CompareSwap => fi::FI_CSWAP,
        AmoOp::Add | AmoOp::AddFloat => fi::FI_SUM,
        AmoOp::And => fi::FI_BAND,
        AmoOp::Or => fi::FI_BOR,
        AmoOp::Xor => fi::FI_BXOR,
    }
}

/// Returns libfabric's number of the type of an operation's word.
pub(crate) fn datatype(op: AmoOp, width: AmoWidth) -> fi::fi_datatype {
    match (op, width) {
        (AmoOp::AddFloat, AmoWidth::Four) => fi::FI_FLOAT,
        (AmoOp::AddFloat, AmoWidth::Eight) => fi::FI_DOUBLE,
        (_, AmoWidth::Four) => fi::FI_UINT32,
        (_, AmoWidth::Eight) => fi::FI_UINT64,
    }
}

/// Returns the atomic operations that an endpoint supports, which was opened with `FI_ATOMIC`.
/// Fails if it lacks a compare-and-swap, of which all others can be composed.
pub(crate) fn supported(endpoint: &Fid<fi::fid_ep>) -> Result<AmoSet, String> {
    let supported = AmoSet::of(|op, width| {
        let ep = endpoint.raw();
        let datatype = datatype(op, width);
        let fi_op = fi_op(op);
        let mut max_count = 0;
        let code = match op {
            // SAFETY: `ep` is open, with atomic operations, and the call stores a number in
            // `max_count`.
            AmoOp::CompareSwap => unsafe {
                fi::fi_compare_atomicvalid(ep, datatype, fi_op, &mut max_count)
            },
            // SAFETY: as for `fi_compare_atomicvalid`.
            _ => unsafe { fi::fi_fetch_atomicvalid(ep, datatype, fi_op, &mut max_count) },
        };
        code == 0 && max_count > 0
    });

    let has_swaps = AmoWidth::ALL
        .into_iter()
        .all(|width| supported.has(AmoOp::CompareSwap, width));
    if !has_swaps {
        let why = "it has no compare-and-swap of 4 and 8 bytes; with SHMEM_AMOS=software \
                   the targets' CPUs carry atomic operations out";
        return Err(why.to_owned());
    }
    Ok(supported)
}
