//! Detects from missing messages that the other side is lost.
//!
//! It counts ticks instead of time, so that only one tick is missed while this process is stopped
//! or the machine is suspended.

use std::time::Duration;

use tokio::time::{Interval, MissedTickBehavior, interval};

/// Ticks in the limit within which a job must have ended.
const TICKS: u32 = 20;

/// Ticks without a message until the other side is lost. The rest of the limit is for ending the
/// job.
const MAX_MISSED: u32 = 12;

/// Returns a timer that does not make up for missed ticks.
pub fn ticks(period: Duration) -> Interval {
    let mut ticks = interval(period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}

/// Returns the time between ticks.
pub fn period(limit: Duration) -> Duration {
    (limit / TICKS).max(Duration::from_millis(1))
}

/// Returns the time without a message after which the other side is lost.
pub fn silence(limit: Duration) -> Duration {
    period(limit) * MAX_MISSED
}

/// Counts ticks since the last message.
#[derive(Debug, Default)]
pub struct HostHeartbeat {
    missed: u32,
}

impl HostHeartbeat {
    /// Records a message.
    pub fn received(&mut self) {
        self.missed = 0;
    }

    /// Records a tick. Returns whether the other side is lost.
    pub fn tick(&mut self) -> bool {
        self.missed += 1;
        self.missed >= MAX_MISSED
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silence_is_lost_within_the_limit() {
        let limit = Duration::from_secs(10);
        assert_eq!(silence(limit), Duration::from_secs(6));
        let mut heartbeat = HostHeartbeat::default();
        for _ in 0..3 {
            assert!((1..MAX_MISSED).all(|_| !heartbeat.tick()));
            heartbeat.received();
        }
        assert_eq!((1..).find(|_: &u32| heartbeat.tick()), Some(MAX_MISSED));
    }
}
