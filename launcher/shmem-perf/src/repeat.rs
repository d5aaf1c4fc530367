//! Repeats a measurement until the confidence interval of its median is narrow, its time is up, or
//! the requested number of repetitions is reached.
//!
//! The PE that issues calls [`repeat`]; if several PEs issue, PE 0 does. The function that the
//! caller passes makes the other PEs take part.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::record::{Ended, Point};
use crate::statistics::{SampleSet, median};

/// The minimum duration of a sample, as a multiple of the time of a clock reading. Shorter
/// operations are timed in groups.
const READINGS: f64 = 20.0;
/// The maximum number of operations in a group.
const LARGEST_GROUP: u64 = 1 << 20;
/// The maximum number of samples of one batch, over all threads of a PE.
pub const MOST_SAMPLES: u64 = 8192;
/// The number of batches into which the time, or the requested number of samples, is divided. It
/// must exceed the number from which on the interval of the median may count as narrow, or no
/// measurement would end before its time.
const BATCHES: u32 = 32;

/// The duration of a warm-up, or a 50th of the measurement's time if that is shorter. It is enough
/// for caches, connections and the CPU's frequency.
const LONGEST_WARM_UP: Duration = Duration::from_millis(50);

/// The limits of a measurement.
pub struct RepeatLimits {
    /// The time for the whole measurement.
    pub time: Duration,
    /// Nanoseconds that reading the clock takes.
    pub clock_ns: f64,
    /// True if operations may be timed in groups.
    pub groups: bool,
    /// The maximum number of samples of one batch.
    pub most_samples: u64,
    /// The number of operations of the warm-up, if `--warm-up` gives it.
    pub warm_up: Option<u64>,
    /// The number of operations, if `--iterations` gives it; the time and the confidence interval
    /// are then ignored.
    pub iterations: Option<u64>,
    /// True if the resulting point contains all values.
    pub keeps_samples: bool,
}

/// A batch: `samples` samples, each of which times `group` operations or windows.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Batch {
    pub samples: u64,
    pub group: u64,
    /// True if this is part of the warm-up, whose times are not counted.
    pub warms_up: bool,
}

/// Measures one point. `times` runs a batch and returns the nanoseconds of one operation, for each
/// sample or for the whole batch. `value` converts them to the unit that is reported.
pub fn repeat(
    nbytes: u64,
    limits: &RepeatLimits,
    mut times: impl FnMut(Batch) -> Vec<f64>,
    value: impl Fn(f64) -> f64,
) -> Point {
    let start = Instant::now();
    let WarmedUp { group, sample_ns } = warm_up(start, limits, &mut times);

    let wanted = limits.iterations.map(|n| n.div_ceil(group));
    let samples = match wanted {
        Some(n) => n.div_ceil(u64::from(BATCHES)),
        None => fitting(limits.time / BATCHES, sample_ns),
    };
    let samples = samples.clamp(1, limits.most_samples);

    let mut seen = SampleSet::new();
    let mut n_samples = 0;
    let mut kept = Vec::new();
    let ended = loop {
        let samples = wanted.map_or(samples, |n| samples.min(n - n_samples));
        let batch = Batch {
            samples,
            group,
            warms_up: false,
        };
        let values: Vec<f64> = times(batch).into_iter().map(&value).collect();
        seen.add(&values);
        n_samples += samples;
        if limits.keeps_samples {
            kept.push(values);
        }

        match wanted {
            Some(n) if n_samples >= n => break Ended::Counted,
            Some(_) => {}
            None if seen.is_narrow() => break Ended::Narrow,
            None if start.elapsed() >= limits.time => break Ended::TimeUp,
            None => {}
        }
    };

    // The mean of a group hides the slow operations that a histogram is to show.
    let histogram = if group == 1 {
        seen.histogram()
    } else {
        Vec::new()
    };
    Point {
        nbytes,
        summary: seen.summary(ended),
        histogram,
        by_pe: None,
        samples: kept,
    }
}

/// The result of a warm-up.
struct WarmedUp {
    /// The number of operations of a sample.
    group: u64,
    /// The nanoseconds that a sample takes.
    sample_ns: f64,
}

/// Runs batches until caches, connections and the CPU's frequency are those of a long run, which
/// began at `start`. This also finds out how long an operation takes, and so the size of the
/// groups.
fn warm_up(
    start: Instant,
    limits: &RepeatLimits,
    mut times: impl FnMut(Batch) -> Vec<f64>,
) -> WarmedUp {
    let mut group = 1;
    let mut n_batches = 1;
    let mut n_operations = 2;
    let mut operation_ns = median(&times(Batch {
        samples: 2,
        group,
        warms_up: true,
    }));

    loop {
        if limits.groups && operation_ns * (group as f64) < READINGS * limits.clock_ns {
            // A fifth more than needed, or else variation would make the next group too small too.
            // The time of an operation may come out as 0.
            let needed = 1.2 * READINGS * limits.clock_ns / operation_ns.max(0.01);
            group = (needed.ceil() as u64).clamp(group + 1, LARGEST_GROUP);
        }
        let sample_ns = operation_ns * group as f64;

        let lasted = start.elapsed();
        let is_warm = match limits.warm_up {
            Some(n) => n_operations + group > n,
            // Three batches, since the first ones have other groups; but a quarter of the time is
            // the most, or slow operations would leave none for the measurement.
            None => {
                let enough = (limits.time / 50).min(LONGEST_WARM_UP);
                lasted > limits.time / 4 || (n_batches >= 3 && lasted >= enough)
            }
        };
        if is_warm {
            return WarmedUp { group, sample_ns };
        }

        let samples = match limits.warm_up {
            Some(n) => (n - n_operations) / group,
            // A warm-up of a 50th of the time has four such batches, so that it ends soon after it
            // has lasted long enough.
            None => fitting(limits.time / 200, sample_ns),
        };
        let samples = samples.clamp(1, limits.most_samples);
        operation_ns = median(&times(Batch {
            samples,
            group,
            warms_up: true,
        }));
        n_batches += 1;
        n_operations += samples * group;
    }
}

/// Returns the number of durations of `ns` nanoseconds that fit into `time`.
fn fitting(time: Duration, ns: f64) -> u64 {
    (time.as_nanos() as f64 / ns.max(1.0)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(time: Duration) -> RepeatLimits {
        RepeatLimits {
            time,
            clock_ns: 25.0,
            groups: true,
            most_samples: 100,
            warm_up: None,
            iterations: None,
            keeps_samples: false,
        }
    }

    const LONG: Duration = Duration::from_secs(3600);

    #[test]
    fn what_does_not_vary_ends_early() {
        let point = repeat(
            8,
            &limits(LONG),
            |batch| vec![1000.0; batch.samples as usize],
            |t| t,
        );
        assert_eq!(point.summary.ended, Ended::Narrow);
        assert_eq!((point.summary.p50, point.nbytes), (1000.0, 8));
        assert!(!point.histogram.is_empty() && point.samples.is_empty());
    }

    #[test]
    fn short_operations_are_timed_in_groups() {
        let mut largest = 0;
        let times = |batch: Batch| {
            largest = largest.max(batch.group);
            vec![2.0; batch.samples as usize]
        };
        let point = repeat(8, &limits(LONG), times, |t| t);
        assert!(largest as f64 * 2.0 >= READINGS * 25.0, "{largest}");
        assert!(point.histogram.is_empty());
    }

    #[test]
    fn the_time_can_be_up() {
        let mut turn = 0.0;
        let vary = |_| {
            turn += 1.0;
            std::thread::sleep(Duration::from_millis(1));
            vec![1e6 * (1.0 + turn % 7.0)]
        };
        let point = repeat(0, &limits(Duration::from_millis(20)), vary, |t| t);
        assert_eq!(point.summary.ended, Ended::TimeUp);
        assert!(point.summary.n > 0);
    }

    #[test]
    fn it_can_be_repeated_as_often_as_wanted() {
        for (warm_up, iterations) in [(2, 1), (50, 7), (300, 1000)] {
            let wanted = RepeatLimits {
                warm_up: Some(warm_up),
                iterations: Some(iterations),
                keeps_samples: true,
                ..limits(Duration::ZERO)
            };
            let mut n = [0, 0];
            let times = |batch: Batch| {
                n[usize::from(batch.warms_up)] += batch.samples * batch.group;
                (0..batch.samples).map(|i| 1000.0 + i as f64).collect()
            };
            let point = repeat(8, &wanted, times, |t| t);
            assert_eq!(n, [iterations, warm_up]);
            assert_eq!(
                (point.summary.ended, point.summary.n),
                (Ended::Counted, iterations)
            );
            let kept: Vec<f64> = point.samples.concat();
            assert_eq!((kept.len() as u64, kept[0]), (iterations, 1000.0));
        }
    }
}
