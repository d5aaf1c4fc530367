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
    /// `word` is valid for reads and writes of a word of this width, and aligned.
    pub(crate) unsafe fn perform(&self, word: *mut u8) -> u64 {
        let order = Ordering::SeqCst;
        if self.width == 4 {
            // SAFETY: `word` is valid and aligned, by contract.
            let word = unsafe { AtomicU32::from_ptr(word.cast()) };
            let new = |old| Some(self.applied(u64::from(old)) as u32);
            let updated = word.fetch_update(order, order, new);
            updated.map(u64::from).expect("the closure returns a value")
        } else {
            // SAFETY: `word` is valid and aligned, by contract.
            let word = unsafe { AtomicU64::from_ptr(word.cast()) };
            let updated = word.fetch_update(order, order, |old| Some(self.applied(old)));
            updated.expect("the closure returns a value")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_are_those_of_libfabric() {
        let amo = |op, width, operand, condition| AtomicOp {
            op,
            width,
            operand,
            condition,
        };
        assert_changes(amo(fi::FI_SUM, 8, 7, 0), 5, 12);
        assert_changes(amo(fi::FI_CSWAP, 8, 7, 5), 5, 7);
        assert_changes(amo(fi::FI_CSWAP, 8, 7, 6), 5, 5);
        assert_changes(amo(fi::FI_ATOMIC_READ, 8, 7, 6), 5, 5);
        assert_changes(amo(fi::FI_ATOMIC_WRITE, 8, 7, 6), 5, 7);
        assert_changes(amo(fi::FI_BXOR, 8, 7, 6), 5, 2);
    }

    /// Asserts that an operation changes a word from `old` to `new`, and returns `old`.
    fn assert_changes(amo: AtomicOp, old: u64, new: u64) {
        let mut word = old;
        // SAFETY: `word` is an aligned variable of 8 bytes.
        let returned = unsafe { amo.perform((&raw mut word).cast()) };
        assert_eq!(returned, old, "{amo:?}");
        assert_eq!(word, new, "{amo:?}");
    }

    #[test]
    fn an_operation_of_4_bytes_leaves_the_next_ones() {
        let amo = AtomicOp {
            op: fi::FI_SUM,
            width: 4,
            operand: 1,
            condition: 0,
        };
        let mut word = u64::MAX;
        // SAFETY: `word` is an aligned variable of 8 bytes.
        let returned = unsafe { amo.perform((&raw mut word).cast()) };
        assert_eq!(returned, u64::from(u32::MAX));
        assert_eq!(word, u64::MAX << 32);
    }
}
