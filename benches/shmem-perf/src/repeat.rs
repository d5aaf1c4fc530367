//! Repeats a measurement until the interval of confidence of its median is narrow, or its time is up.
//!
//! Whoever drives a measurement calls this: the PE that issues, or PE 0 for all. It must never know who else takes part.

use std::time::{Duration, Instant};

use crate::record::{Ended, Point};
use crate::statistics::{Seen, median};

/// A sample lasts at least so many readings of the clock; shorter operations are timed in groups.
const READINGS: f64 = 20.0;
/// Operations that are timed together at most.
const LARGEST_GROUP: u64 = 1 << 20;
/// Samples of one call at most, of all threads of a PE.
pub const MOST_SAMPLES: u64 = 8192;
/// The time that is left is divided into so many batches.
const BATCHES: u32 = 32;

/// Then caches, connections and the CPU's frequency are as they will be.
const LONGEST_WARM_UP: Duration = Duration::from_millis(50);

/// What bounds a measurement.
pub struct Limits {
    /// Until when.
    pub time: Duration,
    /// Nanoseconds of a reading of the clock.
    pub clock_ns: f64,
    /// Whether operations may be timed in groups.
    pub groups: bool,
    /// Samples of one call at most.
    pub most_samples: u64,
}

/// Repeats. `times(samples, group)` runs `samples` groups and returns the nanoseconds of one operation for each that it counts;
/// `value` turns these into what is reported.
pub fn repeat(
    nbytes: u64,
    limits: &Limits,
    mut times: impl FnMut(u64, u64) -> Vec<f64>,
    value: impl Fn(f64) -> f64,
) -> Point {
    let start = Instant::now();
    // The first calls warm up, and find out how long an operation takes.
    let mut group = 1;
    let mut each = median(&times(2, group));
    let mut warm_ups = 1;
    let warm_up = (limits.time / 50).min(LONGEST_WARM_UP);
    while warm_ups < 3 || start.elapsed() < warm_up {
        if limits.groups && each * (group as f64) < READINGS * limits.clock_ns {
            let needed = 1.2 * READINGS * limits.clock_ns / each.max(0.01);
            group = (needed.ceil() as u64).clamp(group + 1, LARGEST_GROUP);
        }
        if start.elapsed() > limits.time / 4 {
            break;
        }
        let fitting = limits.time.as_nanos() as f64 / 200.0 / (each * group as f64).max(1.0);
        each = median(&times((fitting as u64).clamp(1, limits.most_samples), group));
        warm_ups += 1;
    }
    let batch_ns = limits.time.as_nanos() as f64 / f64::from(BATCHES);
    let samples = (batch_ns / (each * group as f64).max(1.0)) as u64;
    let samples = samples.clamp(1, limits.most_samples);
    let mut seen = Seen::new();
    let ended = loop {
        let values: Vec<f64> = times(samples, group).into_iter().map(&value).collect();
        seen.add(&values);
        if seen.is_narrow() {
            break Ended::Narrow;
        }
        if start.elapsed() >= limits.time {
            break Ended::TimeUp;
        }
    };
    let histogram = if group == 1 { seen.histogram() } else { Vec::new() };
    Point { nbytes, summary: seen.summary(ended), histogram }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(time: Duration) -> Limits {
        Limits { time, clock_ns: 25.0, groups: true, most_samples: 100 }
    }

    #[test]
    fn what_does_not_vary_ends_early() {
        let point =
            repeat(8, &limits(Duration::from_secs(3600)), |n, _| vec![1000.0; n as usize], |t| t);
        assert_eq!(point.summary.ended, Ended::Narrow);
        assert_eq!((point.summary.p50, point.nbytes), (1000.0, 8));
        assert!(!point.histogram.is_empty());
    }

    #[test]
    fn short_operations_are_timed_in_groups() {
        let mut largest = 0;
        let point = repeat(
            8,
            &limits(Duration::from_secs(3600)),
            |n, group| {
                largest = largest.max(group);
                vec![2.0; n as usize]
            },
            |t| t,
        );
        assert!(largest as f64 * 2.0 >= READINGS * 25.0, "{largest}");
        assert!(point.histogram.is_empty());
    }

    #[test]
    fn the_time_can_be_up() {
        let mut turn = 0.0;
        let vary = |_, _| {
            turn += 1.0;
            std::thread::sleep(Duration::from_millis(1));
            vec![1e6 * (1.0 + turn % 7.0)]
        };
        let point = repeat(0, &limits(Duration::from_millis(20)), vary, |t| t);
        assert_eq!(point.summary.ended, Ended::TimeUp);
        assert!(point.summary.n > 0);
    }
}
