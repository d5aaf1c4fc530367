//! Which PE of a team has which elements of an array that is distributed by blocks.

use std::ops::Range;

/// Which PE of a team has which elements.
#[derive(Clone, Copy)]
pub(super) struct BlockLayout {
    pub(super) len: usize,
    /// At least 1, so that every index has an owner.
    pub(super) block_len: usize,
}

/// The elements of a range that one PE has.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) owner: usize,
    /// The positions of the elements in the block of the owner.
    pub(super) elements: Range<usize>,
}

impl BlockLayout {
    pub(super) fn new(len: usize, n_pes: usize) -> BlockLayout {
        BlockLayout {
            len,
            block_len: len.div_ceil(n_pes).max(1),
        }
    }

    pub(super) fn owner(self, index: usize) -> usize {
        index / self.block_len
    }

    /// Returns the position of an element in the block of its owner.
    pub(super) fn offset(self, index: usize) -> usize {
        index % self.block_len
    }

    /// Returns the indices of the elements of a PE.
    pub(super) fn of(self, pe: usize) -> Range<usize> {
        // Blocks beyond the last element may begin beyond the maximum of a `usize`, too.
        let start = pe.saturating_mul(self.block_len).min(self.len);
        let end = start.saturating_add(self.block_len).min(self.len);
        start..end
    }

    /// Returns the parts of a range of elements that exist, in their order.
    pub(super) fn parts(self, range: Range<usize>) -> impl Iterator<Item = Part> {
        let mut next = range.start;
        std::iter::from_fn(move || {
            if next == range.end {
                return None;
            }

            let owner = self.owner(next);
            let first = self.offset(next);
            let len = (self.block_len - first).min(range.end - next);
            next += len;

            Some(Part {
                owner,
                elements: first..first + len,
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the ranges of all PEs for an array of `len` elements.
    fn ranges(len: usize, n_pes: usize) -> Vec<Range<usize>> {
        let layout = BlockLayout::new(len, n_pes);
        (0..n_pes).map(|pe| layout.of(pe)).collect()
    }

    #[test]
    fn blocks_are_consecutive_and_the_last_one_is_shorter() {
        assert_eq!(ranges(10, 4), [0..3, 3..6, 6..9, 9..10]);
        assert_eq!(ranges(12, 4), [0..3, 3..6, 6..9, 9..12]);
        assert_eq!(ranges(9, 4), [0..3, 3..6, 6..9, 9..9]);
        assert_eq!(ranges(7, 1)[0], 0..7);
        assert_eq!(ranges(2, 4), [0..1, 1..2, 2..2, 2..2]);
        assert_eq!(ranges(0, 3), [0..0, 0..0, 0..0]);
        assert_eq!(ranges(usize::MAX, 2)[1].end, usize::MAX);
    }

    #[test]
    fn every_element_has_one_owner() {
        for len in 0..30 {
            for n_pes in 1..8 {
                let layout = BlockLayout::new(len, n_pes);
                let mut indices = Vec::new();
                for pe in 0..n_pes {
                    for (offset, index) in layout.of(pe).enumerate() {
                        assert_eq!(layout.owner(index), pe);
                        assert_eq!(layout.offset(index), offset);
                        indices.push(index);
                    }
                }
                assert_eq!(indices, (0..len).collect::<Vec<_>>());
            }
        }
    }

    /// Returns the parts of a range of the array of 10 elements over 4 PEs.
    fn parts(range: Range<usize>) -> Vec<Part> {
        BlockLayout::new(10, 4).parts(range).collect()
    }

    fn part(owner: usize, elements: Range<usize>) -> Part {
        Part { owner, elements }
    }

    #[test]
    fn a_range_has_one_part_for_each_owner() {
        assert_eq!(parts(4..4), []);
        assert_eq!(parts(10..10), []);
        assert_eq!(parts(4..6), [part(1, 1..3)]);
        assert_eq!(parts(2..7), [part(0, 2..3), part(1, 0..3), part(2, 0..1)]);
        assert_eq!(parts(8..10), [part(2, 2..3), part(3, 0..1)]);
        assert_eq!(parts(0..10).len(), 4);
    }
}
