//! Atomic operations that the fabric carries out: their numbers in libfabric, and which of them an
//! endpoint supports.
#![allow(unsafe_code)]

use crate::fabric::Fid;
use libfabric_sys as fi;
use rushmem_transport::{AmoOp, AmoWidth};

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

/// The set of atomic operations that an endpoint supports: a bit for each operation and width.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Native(u32);

impl Native {
    /// Queries an endpoint that was opened for atomic operations. Fails if it lacks a
    /// compare-and-swap.
    pub(crate) fn of(endpoint: &Fid<fi::fid_ep>) -> Result<Native, String> {
        let mut native = Native(0);
        for op in AmoOp::ALL {
            for width in [AmoWidth::Four, AmoWidth::Eight] {
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
                if code == 0 && most > 0 {
                    native.0 |= bit(op, width);
                }
            }
        }
        let swaps = |&width: &AmoWidth| native.has(AmoOp::CompareSwap, width);
        match [AmoWidth::Four, AmoWidth::Eight].iter().all(swaps) {
            true => Ok(native),
            false => Err(
                "it has no compare-and-swap of 4 and 8 bytes; with SHMEM_AMOS=software \
                          the targets' CPUs carry atomic operations out"
                    .to_owned(),
            ),
        }
    }

    pub(crate) fn has(self, op: AmoOp, width: AmoWidth) -> bool {
        self.0 & bit(op, width) != 0
    }

    /// Returns the set with only compare-and-swap, of which all other operations can be composed.
    pub(crate) fn compare_swap_only(self) -> Native {
        let swap = |width| bit(AmoOp::CompareSwap, width);
        Native(self.0 & (swap(AmoWidth::Four) | swap(AmoWidth::Eight)))
    }
}

fn bit(op: AmoOp, width: AmoWidth) -> u32 {
    1 << (2 * op as u32 + u32::from(width == AmoWidth::Eight))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_are_distinguished() {
        let widths = [AmoWidth::Four, AmoWidth::Eight];
        let bits = AmoOp::ALL
            .iter()
            .flat_map(|&op| widths.map(|width| bit(op, width)));
        assert_eq!(bits.fold(0, |all, bit| all ^ bit).count_ones(), 18);
        let swaps = Native(u32::MAX).compare_swap_only();
        for op in AmoOp::ALL {
            for width in [AmoWidth::Four, AmoWidth::Eight] {
                assert_eq!(
                    swaps.has(op, width),
                    op == AmoOp::CompareSwap,
                    "{op:?} {width:?}"
                );
            }
        }
    }
}
