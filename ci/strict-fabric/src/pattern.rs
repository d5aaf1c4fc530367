//! What a fabric may do one way or another is decided by a pattern that is the same in every run.

/// Numbers that look like chance.
pub(crate) struct Pattern(u64);

impl Pattern {
    pub(crate) fn new(seed: u64) -> Pattern {
        Pattern(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// One of so many numbers, from 0.
    pub(crate) fn below(&mut self, n: u32) -> u32 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as u32) % n.max(1)
    }

    /// Whether it is the turn of what happens once in so many times; never for 0.
    pub(crate) fn once_in(&mut self, n: u32) -> bool {
        n > 0 && self.below(n) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_repeats_itself_and_leaves_nothing_out() {
        let numbers = |seed| {
            let mut pattern = Pattern::new(seed);
            (0..100).map(|_| pattern.below(4)).collect::<Vec<u32>>()
        };
        assert_eq!(numbers(3), numbers(3));
        assert_ne!(numbers(3), numbers(4));
        assert!((0..4).all(|n| numbers(3).contains(&n)));
        assert!(!Pattern::new(1).once_in(0));
    }
}
