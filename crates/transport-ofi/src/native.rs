//! Atomic operations that the fabric carries out: their numbers in libfabric, and which of them an
//! endpoint supports.
#![allow(unsafe_code)]

use crate::fabric::Fid;
use libfabric_sys as fi;
use rushmem_transport::{AmoOp, AmoSet, AmoWidth};

/// Returns libfabric's number of an operation.
pub(crate) fn name(op: AmoOp) -> fi::fi_op {
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

/// Returns the atomic operations that an endpoint supports, which was opened for them. Fails if it
/// lacks a compare-and-swap, of which all others can be composed.
pub(crate) fn supported(endpoint: &Fid<fi::fid_ep>) -> Result<AmoSet, String> {
    let supported = AmoSet::of(|op, width| {
        let (ep, datatype, name) = (endpoint.raw(), datatype(op, width), name(op));
        let mut most = 0;
        let code = match op {
            // SAFETY: an open endpoint with atomic operations.
            AmoOp::CompareSwap => unsafe {
                fi::fi_compare_atomicvalid(ep, datatype, name, &mut most)
            },
            // SAFETY: an open endpoint with atomic operations.
            _ => unsafe { fi::fi_fetch_atomicvalid(ep, datatype, name, &mut most) },
        };
        code == 0 && most > 0
    });
    let swaps = |width| supported.has(AmoOp::CompareSwap, width);
    match AmoWidth::ALL.into_iter().all(swaps) {
        true => Ok(supported),
        false => Err(
            "it has no compare-and-swap of 4 and 8 bytes; with SHMEM_AMOS=software \
                      the targets' CPUs carry atomic operations out"
                .to_owned(),
        ),
    }
}
