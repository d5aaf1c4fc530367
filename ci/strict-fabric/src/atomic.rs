//! The effect of atomic operations on a word.
#![allow(unsafe_code)]

use libfabric_sys as fi;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// An atomic operation on a word.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AtomicOp {
    pub(crate) op: fi::fi_op,
    pub(crate) width: usize,
    pub(crate) operand: u64,
    pub(crate) condition: u64,
}

impl AtomicOp {
    /// Returns the new value for an old one.
    pub(crate) fn applied(&self, old: u64) -> u64 {
        let new = match self.op {
            fi::FI_SUM => old.wrapping_add(self.operand),
            fi::FI_BAND => old & self.operand,
            fi::FI_BOR => old | self.operand,
            fi::FI_BXOR => old ^ self.operand,
            fi::FI_ATOMIC_WRITE => self.operand,
            fi::FI_CSWAP if self.truncated(old) == self.truncated(self.condition) => self.operand,
            _ => old,
        };
        self.truncated(new)
    }

    /// Truncates a value to the width of the word.
    fn truncated(&self, value: u64) -> u64 {
        if self.width == 4 {
            value & u64::from(u32::MAX)
        } else {
            value
        }
    }

    /// Performs the operation on a word of this process. Returns the old value.
    ///
    /// # Safety
    /// `at` is valid for reads and writes of a word of this width, and aligned.
    pub(crate) unsafe fn perform(&self, at: *mut u8) -> u64 {
        let order = Ordering::SeqCst;
        if self.width == 4 {
            // SAFETY: valid and aligned, by contract.
            let word = unsafe { AtomicU32::from_ptr(at.cast()) };
            let new = |old| Some(self.applied(u64::from(old)) as u32);
            return word.fetch_update(order, order, new).map_or(0, u64::from);
        }
        // SAFETY: valid and aligned, by contract.
        let word = unsafe { AtomicU64::from_ptr(at.cast()) };
        word.fetch_update(order, order, |old| Some(self.applied(old)))
            .unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_are_those_of_libfabric() {
        let on = |op, width, old: u64, operand, condition| {
            let (amo, mut word) = (
                AtomicOp {
                    op,
                    width,
                    operand,
                    condition,
                },
                old,
            );
            // SAFETY: an aligned local.
            let before = unsafe { amo.perform((&raw mut word).cast()) };
            (before, word)
        };
        assert_eq!(on(fi::FI_SUM, 8, 5, 7, 0), (5, 12));
        assert_eq!(
            on(fi::FI_SUM, 4, u64::MAX, 1, 0),
            (u64::from(u32::MAX), u64::MAX << 32)
        );
        assert_eq!(on(fi::FI_CSWAP, 8, 5, 7, 5), (5, 7));
        assert_eq!(on(fi::FI_CSWAP, 8, 5, 7, 6), (5, 5));
        assert_eq!(on(fi::FI_ATOMIC_READ, 8, 5, 7, 6), (5, 5));
        assert_eq!(on(fi::FI_ATOMIC_WRITE, 8, 5, 7, 6), (5, 7));
        assert_eq!(on(fi::FI_BXOR, 8, 5, 7, 6), (5, 2));
    }
}
