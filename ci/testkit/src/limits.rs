//! The time limits of tests, and waiting for a condition.

use std::thread::sleep;
use std::time::{Duration, Instant};

/// The interval at which a waiting test checks its condition.
pub(crate) const POLL_INTERVAL: Duration = Duration::from_millis(2);
/// The usual limit of a job, and of a condition. Only a hang reaches it, although jobs of 12 PEs
/// take a hundred times as long on a machine of two CPUs that runs 30 other threads.
pub const LIMIT: Duration = Duration::from_secs(300);

/// Returns a time limit, multiplied by RUSHMEM_TEST_SLOWDOWN if that is set, as on slow machines.
///
/// # Panics
/// If that variable is no number.
pub fn patient(limit: Duration) -> Duration {
    match std::env::var("RUSHMEM_TEST_SLOWDOWN") {
        Err(_) => limit,
        Ok(text) => match text.parse::<u32>() {
            Ok(factor) => limit * factor,
            Err(_) => panic!("RUSHMEM_TEST_SLOWDOWN is no number: {text}"),
        },
    }
}

/// Returns true if tests of many sizes or variants run all of them and not a sample: if
/// RUSHMEM_EVERY_SIZE is set, as `cargo xtask test --full` does.
pub fn every_size() -> bool {
    std::env::var_os("RUSHMEM_EVERY_SIZE").is_some()
}

/// Waits until `condition` returns true.
///
/// # Panics
/// If it does not within [`LIMIT`], on a machine of usual speed. The text names `what`.
#[track_caller]
pub fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    let limit = patient(LIMIT);
    while !condition() {
        assert!(start.elapsed() < limit, "not within {limit:?}: {what}");
        sleep(POLL_INTERVAL);
    }
}
