//! Measures how long a host has been silent although an answer of it is awaited, from samples of a
//! connection.
//!
//! The kernel reports when it last received from the host. On a connection that was idle, this may
//! be long before an answer was expected. So silence counts at most from the first sample that
//! found an answer missing.

use std::time::{Duration, Instant};

/// The time of the first of the samples in a row that found an answer missing.
#[derive(Default)]
pub(crate) struct PeerHeartbeat(Option<Instant>);

impl PeerHeartbeat {
    /// Adds a sample: `silence` is the time since the kernel last received data from the host, or
    /// `None` if the kernel awaits no answer. Returns how long the host has been silent although an
    /// answer of it is awaited.
    pub(crate) fn look(&mut self, silence: Option<Duration>, now: Instant) -> Duration {
        let Some(silence) = silence else {
            self.0 = None;
            return Duration::ZERO;
        };
        let since = *self.0.get_or_insert(now);
        silence.min(now.saturating_duration_since(since))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_silence_that_was_seen_counts() {
        let second = Duration::from_secs(1);
        let (mut heartbeat, start) = (PeerHeartbeat::default(), Instant::now());
        assert_eq!(heartbeat.look(Some(60 * second), start), Duration::ZERO, "idle, then probed");
        assert_eq!(heartbeat.look(None, start + second), Duration::ZERO);
        assert_eq!(heartbeat.look(Some(60 * second), start + 2 * second), Duration::ZERO);
        assert_eq!(heartbeat.look(Some(80 * second), start + 22 * second), 20 * second);
        assert_eq!(heartbeat.look(Some(second), start + 23 * second), second, "it answers");
    }
}
