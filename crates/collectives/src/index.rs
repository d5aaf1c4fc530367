//! Arithmetic on the indices of a team: around the circle of members, and in powers of two; and the
//! shares of members in a vector. The results are exact for every size that fits `u32`.

use std::ops::Range;

/// Returns the index `distance <= n` places after `me`, around the circle.
pub(crate) const fn ahead(n: u32, me: u32, distance: u32) -> u32 {
    debug_assert!(me < n && distance <= n);
    let to_the_end = n - me;
    if distance < to_the_end {
        me + distance
    } else {
        distance - to_the_end
    }
}

/// Returns the index `distance <= n` places before `me`, around the circle.
pub(crate) const fn behind(n: u32, me: u32, distance: u32) -> u32 {
    ahead(n, me, n - distance)
}

/// Returns the logarithm of `n` to base 2, rounded up.
pub(crate) const fn log2_ceil(n: u32) -> u32 {
    u32::BITS - (n - 1).leading_zeros()
}

/// Returns the numbers of the rounds for `n` members, from 0: the logarithms of the powers of two
/// below `n`.
pub(crate) fn rounds(n: u32) -> Range<u8> {
    0..log2_ceil(n) as u8
}

/// Returns the parts of a vector that are the share of member `me` of `n`. The sizes of shares
/// differ by at most one part.
pub(crate) fn share(n: u32, me: u32, parts: u32) -> Range<u32> {
    let start_of = |member: u64| (member * u64::from(parts) / u64::from(n)) as u32;
    start_of(u64::from(me))..start_of(u64::from(me) + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_circle_closes() {
        assert_eq!(ahead(5, 3, 1), 4);
        assert_eq!(ahead(5, 3, 2), 0);
        assert_eq!(ahead(5, 3, 5), 3);
        assert_eq!(behind(5, 3, 3), 0);
        assert_eq!(behind(5, 3, 4), 4);
        assert_eq!(behind(5, 3, 0), 3);
        assert_eq!(ahead(u32::MAX, u32::MAX - 1, 1 << 31), (1 << 31) - 1);
        assert_eq!(behind(u32::MAX, 0, 1), u32::MAX - 1);
    }

    #[test]
    fn powers_stop_below_the_size() {
        assert_eq!(
            [1, 2, 4, 5, u32::MAX].map(rounds),
            [0..0, 0..1, 0..2, 0..3, 0..32]
        );
    }

    #[test]
    fn shares_cover_all_parts_once() {
        for (n, parts) in [(1, 1), (3, 2), (4, 4), (7, 100)] {
            let mut end = 0;
            for me in 0..n {
                let share = share(n, me, parts);
                assert_eq!(share.start, end);
                end = share.end;
            }
            assert_eq!(end, parts);
        }

        let last = share(u32::MAX, u32::MAX - 1, u32::MAX);
        assert_eq!(last, u32::MAX - 1..u32::MAX);
    }
}
