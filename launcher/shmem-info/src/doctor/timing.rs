//! The time of repeated calls.

use std::time::{Duration, Instant};

/// The time for which the repetitions of an operation may take.
const ENOUGH: Duration = Duration::from_millis(200);

/// Returns the seconds of one of at most `most` calls.
pub fn each(most: u32, mut act: impl FnMut()) -> f64 {
    let start = Instant::now();
    let mut done = 0;
    while done < most && (done == 0 || start.elapsed() < ENOUGH) {
        act();
        done += 1;
    }
    start.elapsed().as_secs_f64() / f64::from(done)
}
