//! The kinds of atomic operations and the widths of their words, which the operations of the CPU
//! and those over a network share.
//!
//! To add an atomic operation:
//!
//! 1. Here: a variant of [`AmoOp`] and its number. Beside it: the instruction of the CPU
//!    (`mem/amo.rs`) and the choice by operation and width (`mem/apply.rs`); with two operands,
//!    also `engine/entries.rs`.
//! 2. Its name in UCX in `crates/transport-ucx/src/ucp/atomic.rs`, and in libfabric in
//!    `crates/transport-ofi/src/native.rs`.
//! 3. In `ci/conformance/src`: the model of `atomic.rs`, and the list of `random.rs`.
//! 4. The routine in `crates/runtime/src/api/amo.rs`, and its `Effect` in
//!    `crates/communication/src/access/atomic.rs` unless it always writes. Its forms: `amo.rs` of
//!    `crates/shmem-c/src`, of `fortran` there and of `crates/shmem/src`, and `scope.rs` for the
//!    non-blocking form.
//! 5. What any routine needs (`crates/shmem-c/src/lib.rs`), and a case in
//!    `crates/shmem-c/tests/programs/amo.c`.

/// An atomic operation (OpenSHMEM 1.6, atomic memory operations). Increments are additions of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum AmoOp {
    /// Return the value.
    Fetch,
    /// Store the operand.
    Set,
    /// Store the operand, return the old value.
    Swap,
    /// Store the operand if the value equals the condition, return the old value.
    CompareSwap,
    /// Add the operand, wrapping.
    Add,
    /// Bitwise and.
    And,
    /// Bitwise or.
    Or,
    /// Bitwise exclusive or.
    Xor,
    /// Add the operand as a floating-point number of the word's width.
    AddFloat,
}

impl AmoOp {
    /// All operations in the order of their numbers.
    pub const ALL: [AmoOp; 9] = [
        AmoOp::Fetch,
        AmoOp::Set,
        AmoOp::Swap,
        AmoOp::CompareSwap,
        AmoOp::Add,
        AmoOp::And,
        AmoOp::Or,
        AmoOp::Xor,
        AmoOp::AddFloat,
    ];

    /// Returns the operation with this number, the inverse of `op as u8`; `None` if there is none.
    #[inline]
    pub fn from_number(number: u8) -> Option<AmoOp> {
        AmoOp::ALL.get(usize::from(number)).copied()
    }
}

/// The size of the word of an atomic operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AmoWidth {
    /// 4 bytes.
    Four,
    /// 8 bytes.
    Eight,
}

impl AmoWidth {
    /// Both widths.
    pub const ALL: [AmoWidth; 2] = [AmoWidth::Four, AmoWidth::Eight];

    /// Returns the width of a word of `nbytes` bytes; `None` unless these are 4 or 8.
    #[inline]
    pub fn from_nbytes(nbytes: u8) -> Option<AmoWidth> {
        match nbytes {
            4 => Some(AmoWidth::Four),
            8 => Some(AmoWidth::Eight),
            _ => None,
        }
    }

    /// Returns the number of bytes of the word.
    #[inline]
    pub fn nbytes(self) -> usize {
        match self {
            AmoWidth::Four => 4,
            AmoWidth::Eight => 8,
        }
    }
}

/// A set of atomic operations, each with a width.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AmoSet(u32);

impl AmoSet {
    /// Returns the set of the operations for which `has` returns true.
    pub fn of(mut has: impl FnMut(AmoOp, AmoWidth) -> bool) -> AmoSet {
        let mut set = 0;
        for op in AmoOp::ALL {
            for width in AmoWidth::ALL {
                if has(op, width) {
                    set |= bit(op, width);
                }
            }
        }
        AmoSet(set)
    }

    /// Returns true if the set has an operation.
    #[inline]
    pub fn has(self, op: AmoOp, width: AmoWidth) -> bool {
        self.0 & bit(op, width) != 0
    }

    /// Returns true if the set has no operation.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }
}

/// Returns the bit of an operation in a set: two for each kind, one for each width.
#[inline]
fn bit(op: AmoOp, width: AmoWidth) -> u32 {
    1 << (2 * op as u32 + u32::from(width == AmoWidth::Eight))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_has_what_it_was_made_of() {
        assert!(AmoSet::default().is_empty());

        let all = AmoSet::of(|_, _| true);
        assert_eq!(all.0.count_ones(), 18, "each has a bit of its own");

        let swaps = AmoSet::of(|op, _| op == AmoOp::CompareSwap);
        for op in AmoOp::ALL {
            for width in AmoWidth::ALL {
                let is_swap = op == AmoOp::CompareSwap;
                assert!(all.has(op, width), "{op:?} {width:?}");
                assert_eq!(swaps.has(op, width), is_swap, "{op:?} {width:?}");
            }
        }
    }
}
