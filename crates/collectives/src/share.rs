//! Divides a vector among members, or into segments.

/// Returns the parts that member `me` of `n` works on, as the first part and the one after the last.
/// The shares of members differ by at most one part.
pub(crate) fn share(n: u32, me: u32, parts: u32) -> (u32, u32) {
    let at = |member: u64| (member * u64::from(parts) / u64::from(n)) as u32;
    (at(u64::from(me)), at(u64::from(me) + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_cover_all_parts_once() {
        for (n, parts) in [(1, 1), (3, 2), (4, 4), (7, 100)] {
            let ends: Vec<_> = (0..n).map(|me| share(n, me, parts)).collect();
            assert_eq!((ends[0].0, ends[ends.len() - 1].1), (0, parts));
            assert!(ends.windows(2).all(|pair| pair[0].1 == pair[1].0));
        }
        assert_eq!(share(u32::MAX, u32::MAX - 1, u32::MAX), (u32::MAX - 1, u32::MAX));
    }
}
