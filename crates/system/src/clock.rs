//! The clock by which processes of a host compare times.

use rustix::time::{ClockId, Timespec, clock_gettime};
use std::sync::LazyLock;

/// The number of nanoseconds by which the clocks of this process's time namespace are ahead of
/// those of the host. A container may have such a namespace, and then a PE and its launcher, or two
/// PEs, may be in different ones.
static AHEAD: LazyLock<i64> = LazyLock::new(|| {
    let offsets = std::fs::read_to_string("/proc/self/timens_offsets").unwrap_or_default();
    monotonic_offset(&offsets).unwrap_or(0)
});

/// Returns the time in nanoseconds by `CLOCK_MONOTONIC` of the host, whatever the time namespace of
/// this process is.
#[inline]
pub fn nanoseconds_of_host() -> u64 {
    of_host(clock_gettime(ClockId::Monotonic))
}

/// As [`nanoseconds_of_host`], at the last tick of the kernel.
#[inline]
pub fn coarse_nanoseconds_of_host() -> u64 {
    of_host(clock_gettime(ClockId::MonotonicCoarse))
}

fn of_host(time: Timespec) -> u64 {
    let nanoseconds = time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64;
    nanoseconds.wrapping_add_signed(-*AHEAD)
}

/// Returns the offset of the monotonic clock from the text of time_namespaces(7); `None` if the
/// kernel has no time namespaces.
fn monotonic_offset(offsets: &str) -> Option<i64> {
    let line = offsets
        .lines()
        .find_map(|line| line.strip_prefix("monotonic"))?;
    let mut fields = line.split_whitespace();
    let seconds: i64 = fields.next()?.parse().ok()?;
    let nanoseconds: i64 = fields.next()?.parse().ok()?;
    seconds.checked_mul(1_000_000_000)?.checked_add(nanoseconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_may_be_negative() {
        let text = "monotonic           0         0\nboottime            0         0\n";
        assert_eq!(monotonic_offset(text), Some(0));
        let text = "monotonic        -100 500000000\nboottime            7         0\n";
        assert_eq!(monotonic_offset(text), Some(-99_500_000_000));
        assert_eq!(monotonic_offset(""), None);
    }
}
