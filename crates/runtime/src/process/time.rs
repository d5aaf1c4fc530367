//! The clock of this machine, for measurements, statuses and traces.

use rustix::time::{ClockId, clock_gettime};

/// Returns the nanoseconds of that clock.
pub(crate) fn nanoseconds() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Returns the nanoseconds of that clock at its last tick, some milliseconds ago at most: an eighth
/// of the time to read it.
pub(crate) fn coarse_nanoseconds() -> u64 {
    let now = clock_gettime(ClockId::MonotonicCoarse);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// `shmemx_wtime`: seconds since some moment that is the same for all PEs of a machine. The clock
/// never goes back; the library need not be initialized.
pub fn wtime() -> f64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as f64 + now.tv_nsec as f64 * 1e-9
}
