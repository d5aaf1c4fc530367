//! Decides from a clock and from the messages received whether the other side is alive.
//!
//! It counts ticks, not time: if this process was stopped, or the machine slept, only one tick was missed.

use std::time::Duration;

/// Ticks in the limit within which a job must have ended.
const TICKS: u32 = 20;

/// Ticks without a message after which the other side is lost; the rest of the limit is for ending the job.
const MAX_MISSED: u32 = 12;

/// The time between ticks.
pub fn period(limit: Duration) -> Duration {
    (limit / TICKS).max(Duration::from_millis(1))
}

/// How long the other side has been silent when it counts as lost.
pub fn silence(limit: Duration) -> Duration {
    period(limit) * MAX_MISSED
}

/// The recent messages of the other side.
#[derive(Debug, Default)]
pub struct Heartbeat {
    missed: u32,
}

impl Heartbeat {
    /// A message has arrived.
    pub fn heard(&mut self) {
        self.missed = 0;
    }

    /// A tick has passed. Returns whether the other side is lost.
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
        let mut heartbeat = Heartbeat::default();
        for _ in 0..3 {
            assert!((1..MAX_MISSED).all(|_| !heartbeat.tick()));
            heartbeat.heard();
        }
        assert_eq!((1..).find(|_: &u32| heartbeat.tick()), Some(MAX_MISSED));
    }
}
