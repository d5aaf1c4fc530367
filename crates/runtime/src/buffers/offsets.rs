//! Where a buffer is in the heap of each PE.

use super::Move;

/// The offset of a buffer in the heap of each PE; one for all if they are equal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Offsets(Vec<u64>);

impl Offsets {
    /// Makes the offsets of these, in the order of the PEs.
    pub(super) fn of_all(offsets: impl Iterator<Item = u64>) -> Offsets {
        let mut offsets = Offsets(offsets.collect());
        offsets.compare();
        offsets
    }

    /// Returns the offset on a PE.
    pub(super) fn on(&self, pe: usize) -> u64 {
        *self.0.get(pe).unwrap_or(&self.0[0])
    }

    /// Returns the offset if it is the same on all PEs.
    pub(super) fn equal(&self) -> Option<u64> {
        match self.0[..] {
            [offset] => Some(offset),
            _ => None,
        }
    }

    /// Changes the offset on one of `n_pes` PEs if a move there includes it. [`compare`] follows
    /// when all moves were made.
    ///
    /// [`compare`]: Offsets::compare
    pub(super) fn move_on(&mut self, pe: usize, n_pes: usize, moves: &[Move]) {
        let offset = self.on(pe);
        let is_moved = |moved: &&Move| offset.wrapping_sub(moved.from) < moved.nbytes;
        if let Some(moved) = moves.iter().find(is_moved) {
            let first = self.0[0];
            self.0.resize(n_pes, first);
            self.0[pe] = moved.to + (offset - moved.from);
        }
    }

    /// Keeps one offset if all are equal.
    pub(super) fn compare(&mut self) {
        if self.0.iter().all(|offset| *offset == self.0[0]) {
            self.0.truncate(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_move_changes_the_offset_of_what_it_includes_on_one_pe() {
        let moved = Move {
            from: 100,
            nbytes: 50,
            to: 1000,
        };
        let mut offsets = Offsets::of_all([120, 120, 120].into_iter());
        assert_eq!(offsets.equal(), Some(120));

        offsets.move_on(1, 3, &[moved]);
        offsets.compare();
        assert_eq!([0, 1, 2].map(|pe| offsets.on(pe)), [120, 1020, 120]);
        assert_eq!(offsets.equal(), None);

        for pe in [0, 2] {
            offsets.move_on(pe, 3, &[moved]);
        }
        offsets.compare();
        assert_eq!(offsets.equal(), Some(1020));

        for outside in [99, 150] {
            let mut offsets = Offsets::of_all([outside, 5].into_iter());
            offsets.move_on(0, 2, &[moved]);
            assert_eq!(offsets, Offsets(vec![outside, 5]));
        }
    }
}
