//! The limits of waits (an extension): how long a call waits at the longest.
//!
//! A wait that has reached its limit has changed nothing, and may be repeated.

use rushmem_pe::call::{Call, fail};
use rushmem_pe::job;
use std::error::Error;
use std::fmt;
use std::time::Duration;

/// The limit of a wait has passed before the wait was over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimedOut;

impl fmt::Display for TimedOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the limit of a wait has passed")
    }
}

impl Error for TimedOut {}

/// The longest limit, of some 30 years. A longer one is none: the clock has nanoseconds in 64 bits.
const LONGEST: Duration = Duration::from_secs(1_000_000_000);

/// Returns the limit of a wait of this many seconds; none for a negative or huge number and for
/// NaN, which with `SHMEM_CHECK` ends the job with an error.
pub fn of_seconds(call: Call, seconds: f64) -> Option<Duration> {
    if seconds.is_nan() && job::require(call).settings.checks() {
        fail!(
            call,
            "argument seconds is NaN, which is no limit; pass -1 to wait without a limit"
        );
    }
    of_duration(Duration::try_from_secs_f64(seconds).ok()?)
}

/// Returns the limit of a wait of this duration; none if it is huge.
pub fn of_duration(duration: Duration) -> Option<Duration> {
    (duration <= LONGEST).then_some(duration)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::kit::CALL;

    #[test]
    fn every_number_of_seconds_is_a_limit_or_none() {
        let limit = |seconds| of_seconds(CALL, seconds);
        assert_eq!(limit(0.0), Some(Duration::ZERO));
        assert_eq!(limit(-0.0), Some(Duration::ZERO));
        assert_eq!(limit(0.25), Some(Duration::from_millis(250)));
        assert_eq!(limit(1e-300), Some(Duration::ZERO));
        assert_eq!(limit(86_400.0), Some(Duration::from_secs(86_400)));

        for none in [-1.0, -1e-300, 1e10, 1e300, f64::INFINITY, f64::NEG_INFINITY] {
            assert_eq!(limit(none), None, "{none}");
        }
        assert_eq!(of_duration(Duration::MAX), None);
    }
}
