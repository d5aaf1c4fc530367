//! Statistics: quantiles, percentiles, the confidence interval of the median, a histogram.

use hdrhistogram::Histogram;

use crate::record::{Ended, Interval, Summary, ValueCount};

/// Figures are kept in thousandths, with three significant digits.
const SCALE: f64 = 1000.0;
/// The maximum ratio of the largest to the smallest value in a bar of the histogram of a record.
const BAR: f64 = 1.02;
/// A confidence interval is narrow if its width is at most this part of the median.
const NARROW: f64 = 0.02;
/// The minimum number of batches before a confidence interval may count as narrow.
const FEWEST_BATCHES: usize = 16;
/// The minimum number of values whose minimum and maximum enclose the median of their distribution
/// with a probability of 95 %.
const FEWEST_OF_INTERVAL: usize = 6;
/// The minimum number of values for which a 99th percentile is shown.
pub const FEWEST_OF_P99: u64 = 100;
/// The minimum number of values for which a 99.9th percentile is computed.
const FEWEST_OF_P999: u64 = 1000;

/// The values of a measurement so far, in batches.
pub(crate) struct SampleSet {
    histogram: Histogram<u64>,
    sum: f64,
    min: f64,
    max: f64,
    medians: Vec<f64>,
}

impl SampleSet {
    pub fn new() -> Self {
        let histogram = Histogram::new(3).expect("three digits are possible");
        Self {
            histogram,
            sum: 0.0,
            min: f64::INFINITY,
            max: 0.0,
            medians: Vec::new(),
        }
    }

    /// Adds a batch of values that are not negative.
    pub fn add(&mut self, values: &[f64]) {
        if values.is_empty() {
            return;
        }
        for &value in values {
            self.histogram
                .record((value * SCALE) as u64)
                .expect("it grows with its values");
            self.sum += value;
            self.min = self.min.min(value);
            self.max = self.max.max(value);
        }
        self.medians.push(median(values));
    }

    /// Returns true if there are enough batches and the confidence interval of the median is
    /// narrow.
    pub fn is_narrow(&self) -> bool {
        if self.medians.len() < FEWEST_BATCHES {
            return false;
        }
        match interval(&self.medians) {
            Some(Interval { low, high }) => high - low <= NARROW * median(&self.medians),
            None => false,
        }
    }

    pub fn n(&self) -> u64 {
        self.histogram.len()
    }

    /// Returns the summary of the values. There must be at least one.
    pub fn summary(&self, ended: Ended) -> Summary {
        // The median is computed from the medians of the batches, as its interval is. The median of
        // all values may be outside of the interval if batches differ, and the histogram rounds it
        // up.
        let p50 = median(&self.medians);
        let percentile = |part: f64| {
            let value = self.histogram.value_at_quantile(part) as f64 / SCALE;
            value.clamp(p50, self.max)
        };

        let n = self.n();
        let p999 = if n >= FEWEST_OF_P999 {
            Some(percentile(0.999))
        } else {
            None
        };
        Summary {
            n,
            mean: self.sum / n as f64,
            min: self.min,
            p50,
            p90: percentile(0.9),
            p99: percentile(0.99),
            p999,
            max: self.max,
            interval: interval(&self.medians),
            batches: self.medians.clone(),
            ended,
        }
    }

    /// Returns the values in ascending order; those within 2 % are counted as one.
    pub fn histogram(&self) -> Vec<ValueCount> {
        let mut bars: Vec<ValueCount> = Vec::new();
        for step in self.histogram.iter_recorded() {
            let value = step.value_iterated_to() as f64 / SCALE;
            let count = step.count_at_value();
            match bars.last_mut() {
                Some(bar) if value <= bar.value * BAR => bar.count += count,
                _ => bars.push(ValueCount { value, count }),
            }
        }
        bars
    }
}

/// Returns the median, or 0 of no values.
pub fn median(values: &[f64]) -> f64 {
    quantile(&sorted(values), 0.5)
}

/// Returns a quantile of sorted values, interpolated between neighbors, or 0 of no values.
pub fn quantile(sorted: &[f64], part: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else {
        return 0.0;
    };
    let position = part * last as f64;
    let below = position.floor() as usize;
    let above = (below + 1).min(last);
    sorted[below] + (sorted[above] - sorted[below]) * (position - below as f64)
}

/// Returns the values in ascending order.
pub fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

/// The median of a sample and the range of its middle half.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// The first quartile.
    pub low: f64,
    /// The median.
    pub median: f64,
    /// The third quartile.
    pub high: f64,
}

impl Spread {
    /// Returns the spread of a sample that is not empty.
    pub fn of(sample: &[f64]) -> Self {
        let sorted = sorted(sample);
        let [low, median, high] = [0.25, 0.5, 0.75].map(|part| quantile(&sorted, part));
        Self { low, median, high }
    }

    /// Returns true if the middle halves overlap, which means that no difference was measured.
    pub fn overlaps(&self, other: &Self) -> bool {
        self.low <= other.high && other.low <= self.high
    }
}

/// Returns the 95 % confidence interval of the median, which holds for any distribution: the number
/// of values below the true median has a binomial distribution with probability one half. Returns
/// `None` for fewer than six values.
fn interval(values: &[f64]) -> Option<Interval> {
    let n = values.len();
    if n < FEWEST_OF_INTERVAL {
        return None;
    }

    // The normal approximation: the mean of the number is n / 2, its standard deviation half the
    // root of n, and 95 % of a normal distribution are within 1.96 standard deviations.
    let outside = (n as f64 - 1.96 * (n as f64).sqrt()) / 2.0;
    let rank = outside.floor().max(1.0) as usize;
    let sorted = sorted(values);
    Some(Interval {
        low: sorted[rank - 1],
        high: sorted[n - rank],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(value: f64, expected: f64) {
        assert!(
            (value - expected).abs() <= 0.002 * expected,
            "{value} is not {expected}"
        );
    }

    #[test]
    fn quartiles_lie_between_neighbors() {
        let spread = Spread::of(&[4.0, 1.0, 3.0, 2.0]);
        assert_eq!((spread.low, spread.median, spread.high), (1.75, 2.5, 3.25));
        assert_eq!(
            Spread::of(&[7.0]),
            Spread {
                low: 7.0,
                median: 7.0,
                high: 7.0
            }
        );
        assert_eq!(median(&[]), 0.0);
    }

    #[test]
    fn ranges_that_touch_overlap() {
        let low = Spread {
            low: 1.0,
            median: 2.0,
            high: 3.0,
        };
        let touching = Spread {
            low: 3.0,
            high: 9.0,
            ..low
        };
        assert!(low.overlaps(&touching) && touching.overlaps(&low));
        assert!(!low.overlaps(&Spread {
            low: 3.1,
            ..touching
        }));
    }

    #[test]
    fn percentiles_are_those_of_the_values() {
        let mut seen = SampleSet::new();
        for batch in 0..10 {
            let values: Vec<f64> = (1..=1000)
                .map(|n| f64::from(n) + f64::from(batch) / 10.0)
                .collect();
            seen.add(&values);
        }
        let summary = seen.summary(Ended::TimeUp);
        assert_eq!((summary.n, summary.min, summary.max), (10_000, 1.0, 1000.9));
        near(summary.mean, 500.95);
        assert_eq!(summary.p50, 500.95);
        near(summary.p90, 900.9);
        near(summary.p99, 990.9);
        near(summary.p999.expect("of many values"), 999.9);
        assert_eq!(summary.batches.len(), 10);
        let total: u64 = seen.histogram().iter().map(|bar| bar.count).sum();
        assert_eq!(total, 10_000);
    }

    #[test]
    fn small_values_keep_three_digits() {
        let mut seen = SampleSet::new();
        seen.add(&[1.234, 1.234, 1.234]);
        near(seen.summary(Ended::Narrow).p50, 1.234);
    }

    #[test]
    fn few_values_have_no_interval_and_no_tail() {
        assert_eq!(interval(&[]), None);
        assert_eq!(interval(&[3.0, 1.0, 2.0, 5.0, 4.0]), None);
        let of_six = Interval {
            low: 1.0,
            high: 6.0,
        };
        assert_eq!(interval(&[3.0, 1.0, 2.0, 6.0, 5.0, 4.0]), Some(of_six));
        let mut seen = SampleSet::new();
        seen.add(&[1.0; 999]);
        assert_eq!(seen.summary(Ended::TimeUp).p999, None);
        seen.add(&[1.0]);
        assert_eq!(seen.summary(Ended::TimeUp).p999, Some(1.0));
    }

    #[test]
    fn a_median_lies_within_its_interval_and_between_the_percentiles() {
        let rng = &mut fastrand::Rng::with_seed(4);
        for n_batches in 6..60 {
            // Each batch has two clusters of values, and the batches drift.
            let mut seen = SampleSet::new();
            for batch in 0..n_batches {
                let value = |i| 10.0 + f64::from(batch) / 7.0 + f64::from(i % 2) * 90.0 + rng.f64();
                seen.add(&(0..33).map(value).collect::<Vec<f64>>());
            }
            let s = seen.summary(Ended::TimeUp);
            let Interval { low, high } = s.interval.expect("an interval");
            assert!(low <= s.p50 && s.p50 <= high, "{s:?}");
            assert!(s.min <= s.p50 && s.p50 <= s.p90, "{s:?}");
        }
    }

    #[test]
    fn the_interval_of_many_values_is_narrow() {
        // The interval excludes 3 of 16 values on each side: a fair coin that is thrown 16 times
        // shows fewer than 4 heads, or fewer than 4 tails, in 2 % of all cases.
        let values: Vec<f64> = (1..=16).map(f64::from).collect();
        let expected = Interval {
            low: 4.0,
            high: 13.0,
        };
        assert_eq!(interval(&values), Some(expected));
    }

    #[test]
    fn values_that_vary_are_not_narrow() {
        let mut same = SampleSet::new();
        let mut varied = SampleSet::new();
        for batch in 0..16 {
            assert!(!same.is_narrow());
            same.add(&[100.0]);
            varied.add(&[100.0 + f64::from(batch % 4)]);
        }
        assert!(same.is_narrow() && !varied.is_narrow());
    }
}
