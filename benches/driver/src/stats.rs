//! Medians with their spread, and when two of them are called equal.

/// The median of a sample and the range of its middle half.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// The first quartile.
    pub low: f64,
    /// The middle value.
    pub median: f64,
    /// The third quartile.
    pub high: f64,
}

impl Spread {
    /// The quartiles of `sample`, interpolated between neighbours; `None` when it is empty.
    pub fn of(mut sample: Vec<f64>) -> Option<Self> {
        sample.sort_by(f64::total_cmp);
        let last = sample.len().checked_sub(1)?;
        let at = |fraction: f64| {
            let position = fraction * last as f64;
            let below = position.floor() as usize;
            let above = (below + 1).min(last);
            sample[below] + (sample[above] - sample[below]) * (position - below as f64)
        };
        Some(Self { low: at(0.25), median: at(0.5), high: at(0.75) })
    }

    /// Whether the ranges share a value: then no difference was measured.
    pub fn overlaps(&self, other: &Self) -> bool {
        self.low <= other.high && other.low <= self.high
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quartiles_lie_between_neighbours() {
        let spread = Spread::of(vec![4.0, 1.0, 3.0, 2.0]).unwrap();
        assert_eq!((spread.low, spread.median, spread.high), (1.75, 2.5, 3.25));
        let one = Spread::of(vec![7.0]).unwrap();
        assert_eq!((one.low, one.median, one.high), (7.0, 7.0, 7.0));
        assert_eq!(Spread::of(Vec::new()), None);
    }

    #[test]
    fn ranges_that_touch_are_equal() {
        let low = Spread { low: 1.0, median: 2.0, high: 3.0 };
        let touching = Spread { low: 3.0, ..low };
        let above = Spread { low: 3.1, ..low };
        assert!(low.overlaps(&touching) && touching.overlaps(&low));
        assert!(!low.overlaps(&Spread { high: 9.0, ..above }));
    }
}
