//! The time limits of tests: for an end that never comes, and for events that come soon.

use std::thread::sleep;
use std::time::{Duration, Instant};

/// The interval at which a waiting test checks.
pub(crate) const GLANCE: Duration = Duration::from_millis(2);
/// The usual limit of a job, and of a condition. Only what hangs reaches it: jobs of 12 PEs take a
/// hundred times as long on a machine of two CPUs that runs 30 other threads.
pub const LIMIT: Duration = Duration::from_secs(300);

/// Returns a time limit, times RUSHMEM_TEST_SLOWDOWN where the machine is slow.
///
/// # Panics
/// Where that variable is no number.
pub fn patient(limit: Duration) -> Duration {
    match std::env::var("RUSHMEM_TEST_SLOWDOWN") {
        Err(_) => limit,
        Ok(text) => match text.parse::<u32>() {
            Ok(factor) => limit * factor,
            Err(_) => panic!("RUSHMEM_TEST_SLOWDOWN is no number: {text}"),
        },
    }
}

/// Returns true if tests that repeat something at many sizes, or in many ways, do so with all of
/// them: with RUSHMEM_EVERY_SIZE, which `cargo xtask test --full` sets.
pub fn every_size() -> bool {
    std::env::var_os("RUSHMEM_EVERY_SIZE").is_some()
}

/// Waits until `condition` holds.
///
/// # Panics
/// When it does not within the usual limit.
#[track_caller]
pub fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let (start, limit) = (Instant::now(), patient(LIMIT));
    while !condition() {
        assert!(start.elapsed() < limit, "not within {limit:?}: {what}");
        sleep(GLANCE);
    }
}
