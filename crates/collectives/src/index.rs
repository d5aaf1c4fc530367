//! Arithmetic on the indices of a team: around the circle of members, and in powers of two. It is
//! exact for every size that fits `u32`.

/// Returns the index `distance <= n` places after `me`, around the circle.
pub(crate) const fn ahead(n: u32, me: u32, distance: u32) -> u32 {
    debug_assert!(me < n && distance <= n);
    let to_the_end = n - me;
    if distance < to_the_end { me + distance } else { distance - to_the_end }
}

/// Returns the index `distance <= n` places before `me`, around the circle.
pub(crate) const fn behind(n: u32, me: u32, distance: u32) -> u32 {
    ahead(n, me, n - distance)
}

/// Returns how many powers of two are below `n`: the logarithm of `n`, rounded up.
pub(crate) const fn log2_ceil(n: u32) -> u32 {
    u32::BITS - (n - 1).leading_zeros()
}

/// Returns the logarithms of the powers of two below `n`: 0, 1, 2 ..
pub(crate) fn rounds(n: u32) -> std::ops::Range<u8> {
    0..log2_ceil(n) as u8
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
        assert_eq!([1, 2, 4, 5, u32::MAX].map(rounds), [0..0, 0..1, 0..2, 0..3, 0..32]);
    }
}
