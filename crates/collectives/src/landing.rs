//! Numbers of the landing buffers, and the rule that keeps them from being overwritten unread.
//!
//! A peer writes a landing buffer without asking, so it has to know that what it wrote there
//! before has been read. Two rules give that, each with its own range of numbers:
//!
//! - [`ALL_REDUCE`]: the executor holds two copies of each and uses them in turn, by the parity of
//!   a count of the team's all-reduce plans. No member ends such a plan before every member has
//!   entered it; so whoever runs the next but one knows that all have ended this one.
//! - [`SCAN`]: a low index may be many scans ahead of a high one, so the receiver sends credits.
//!   They make one copy enough, and a second one harmless.
//!
//! What a landing buffer is made of is the executor's business.

use crate::index::log2_ceil;
use std::ops::Range;

/// The landings of all-reduce, for any size of team: two copies each.
pub const ALL_REDUCE: Range<u8> = 0..32;

/// The landings of scans, for any size of team.
pub const SCAN: Range<u8> = 32..65;

/// The part of [`ALL_REDUCE`] that a team of `n` uses: one for each round.
pub const fn all_reduce(n: u32) -> Range<u8> {
    ALL_REDUCE.start..ALL_REDUCE.start + log2_ceil(n) as u8
}

/// The part of [`SCAN`] that a team of `n` uses: one for each round, the shift of an exclusive scan
/// included.
pub const fn scan(n: u32) -> Range<u8> {
    let shift = (n > 1) as u8;
    SCAN.start..SCAN.start + log2_ceil(n) as u8 + shift
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_team_uses_all_and_the_ranges_do_not_meet() {
        assert_eq!(all_reduce(u32::MAX), ALL_REDUCE);
        assert_eq!(scan(u32::MAX), SCAN);
        const { assert!(ALL_REDUCE.end <= SCAN.start) };
    }

    #[test]
    fn a_team_of_one_uses_none() {
        assert!(all_reduce(1).is_empty());
        assert!(scan(1).is_empty());
    }
}
