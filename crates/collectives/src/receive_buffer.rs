//! The number and size of receive buffers, and the rules that keep them from being overwritten
//! before they are read.
//!
//! A receive buffer is for the data that a peer puts in one round. Teams of a PE may share its
//! receive buffers, so a member puts to a receive buffer of a peer only when it knows that the peer
//! has entered the same collective. It knows this from the plan `entry` of the algorithm, or from
//! credits in the plan itself. Several plans of one collective may follow one `entry`: the executor
//! has two copies of each receive buffer and uses them in turn. No member ends such a plan before
//! every member has entered it. So a member that runs the next plan but one knows that all members
//! have ended this one.
//!
//! An all-reduce, scan or all-to-all needs no `entry` if its receive buffers are used only by such
//! collectives among the same members, which all members call in the same order. Two copies then
//! suffice, selected by the parity of the number of these calls. A member that writes in call `i`
//! has ended call `i - 1`, so all members have entered `i - 1`, and have read what was put in
//! `i - 2`. The executor has such receive buffers for these collectives among all PEs, on any team.
//! For short vectors of all-reduces, it has others beside flags.

use crate::index::log2_ceil;

/// The minimum number of bytes of a receive buffer.
pub const MIN_BYTES: usize = 8 << 10;

/// Returns the bytes of a receive buffer in a job of `n` PEs. A large job has more receive buffers,
/// so they are shorter, since their memory is locked.
pub const fn nbytes(n: u32) -> usize {
    match n {
        0..=16 => 4 * MIN_BYTES,
        17..=64 => 2 * MIN_BYTES,
        _ => MIN_BYTES,
    }
}

/// Returns the maximum number of receive buffers that a team of `n` uses: one for each round, and
/// one for the shift of an exclusive scan.
pub const fn count(n: u32) -> usize {
    let shift = (n > 1) as usize;
    log2_ceil(n) as usize + shift
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_one_for_each_round_and_the_shift() {
        assert_eq!([1, 2, 3, 4, u32::MAX].map(count), [0, 2, 3, 3, 33]);
    }
}
