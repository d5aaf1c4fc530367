//! What a call changes in the symmetric heap, as a number that the PEs of a node compare.

use crate::coll::composition::COMPARED_BITS;
use std::fmt;

/// A change of the heap, which all PEs must make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HeapChange {
    /// A block of this many bytes is allocated.
    Allocate(u64),
    /// The block at this offset of the heap is freed.
    Free(u64),
    /// A block gets this many bytes.
    Reallocate(u64),
    /// The blocks that all PEs have released are freed: by a call for that, if the number is 0, or
    /// because there is no room for this many bytes.
    Reclaim(u64),
    /// A buffer of this many bytes is registered; with 0, the registration of one ends.
    Register(u64),
}

/// The number of the bits of a word for the size or offset. Three more have the kind.
const VALUE_BITS: u32 = COMPARED_BITS - 3;
/// Maximum size or offset in a word. No heap has room for more bytes.
const MAX: u64 = (1 << VALUE_BITS) - 1;

impl HeapChange {
    /// Returns a word that no other change has, unless the sizes of both exceed any heap.
    pub(crate) fn word(self) -> u64 {
        let (kind, value) = match self {
            HeapChange::Allocate(nbytes) => (0, nbytes),
            HeapChange::Free(offset) => (1, offset),
            HeapChange::Reallocate(nbytes) => (2, nbytes),
            HeapChange::Reclaim(wanted) => (3, wanted),
            HeapChange::Register(nbytes) => (4, nbytes),
        };
        kind << VALUE_BITS | value.min(MAX)
    }

    /// Returns the change of a word.
    pub(crate) fn of_word(word: u64) -> HeapChange {
        let value = word & MAX;
        match word >> VALUE_BITS {
            0 => HeapChange::Allocate(value),
            1 => HeapChange::Free(value),
            2 => HeapChange::Reallocate(value),
            3 => HeapChange::Reclaim(value),
            _ => HeapChange::Register(value),
        }
    }
}

impl fmt::Display for HeapChange {
    /// Writes the predicate of a sentence about a PE.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HeapChange::Allocate(nbytes) => write!(f, "allocates {nbytes} bytes"),
            HeapChange::Free(offset) => write!(f, "frees the block at heap offset {offset:#x}"),
            HeapChange::Reallocate(nbytes) => write!(f, "reallocates a block to {nbytes} bytes"),
            HeapChange::Reclaim(0) => f.write_str("reclaims the released blocks"),
            HeapChange::Reclaim(wanted) => write!(f, "has no room for {wanted} bytes"),
            HeapChange::Register(0) => f.write_str("ends the registration of a buffer"),
            HeapChange::Register(nbytes) => write!(f, "registers a buffer of {nbytes} bytes"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_is_not_taken_for_an_offset() {
        let changes = [
            HeapChange::Allocate(64),
            HeapChange::Free(64),
            HeapChange::Reallocate(64),
            HeapChange::Register(64),
            HeapChange::Free(16),
            HeapChange::Allocate(MAX),
            HeapChange::Reclaim(64),
        ];
        for change in changes {
            assert_eq!(HeapChange::of_word(change.word()), change);
        }
        let texts = changes.map(|change| change.to_string());
        assert_eq!(texts[0], "allocates 64 bytes");
        assert_eq!(texts[4], "frees the block at heap offset 0x10");

        // A negative size is none of another kind.
        let negative = HeapChange::Allocate(u64::MAX).word();
        assert_eq!(HeapChange::of_word(negative), HeapChange::Allocate(MAX));
    }
}
