//! A reproducible pseudo-random sequence, which decides where a fabric has a choice.

/// A pseudo-random sequence.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// A number from 0 to `n` - 1.
    pub(crate) fn below(&mut self, n: u32) -> u32 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as u32) % n.max(1)
    }

    /// True with probability 1/`n`; never for 0.
    pub(crate) fn one_in(&mut self, n: u32) -> bool {
        n > 0 && self.below(n) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sequence_is_reproducible_and_contains_all_numbers() {
        let numbers = |seed| {
            let mut random = Random::new(seed);
            (0..100).map(|_| random.below(4)).collect::<Vec<u32>>()
        };
        assert_eq!(numbers(3), numbers(3));
        assert_ne!(numbers(3), numbers(4));
        assert!((0..4).all(|n| numbers(3).contains(&n)));
        assert!(!Random::new(1).one_in(0));
    }
}
