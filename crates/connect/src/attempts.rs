//! Repeated attempts to connect, with pauses.

use std::fmt::Display;
use std::time::{Duration, Instant};

/// The first pause between attempts. Each is twice as long as the one before, up to
/// [`LONGEST_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_millis(1);
/// The longest pause between attempts. It bounds the time for which a process that has become
/// reachable goes unnoticed. A shorter one would load a process that thousands of others await.
const LONGEST_PAUSE: Duration = Duration::from_millis(250);

/// The refused attempts to reach one process. Attempts are repeated, with pauses, for some time:
/// the process may start later, and where many connect over one NIC at once, some attempts fail.
#[derive(Debug)]
pub struct Attempts {
    first: Instant,
    n: u32,
    pause: Duration,
    next: Instant,
}

impl Attempts {
    /// Returns a record without attempts.
    pub fn new(now: Instant) -> Attempts {
        Attempts {
            first: now,
            n: 0,
            pause: FIRST_PAUSE,
            next: now,
        }
    }

    /// Records a refusal, and sets the time of the next attempt. Returns false if `limit` has
    /// passed since the first attempt, so that no other one is to be made.
    pub fn record_refusal(&mut self, now: Instant, limit: Duration) -> bool {
        self.n += 1;
        self.next = now + self.pause;
        self.pause = (2 * self.pause).min(LONGEST_PAUSE);
        now.duration_since(self.first) < limit
    }

    /// Returns the time of the next attempt.
    pub fn next(&self) -> Instant {
        self.next
    }

    /// Waits until the time of the next attempt.
    pub fn pause(&self) {
        std::thread::sleep(self.next.saturating_duration_since(Instant::now()));
    }

    /// Returns how many attempts were refused.
    pub fn n(&self) -> u32 {
        self.n
    }

    /// Returns a clause for the message about a process that was not reached: how often PE `me` has
    /// tried, and for how long.
    pub fn tried(&self, me: impl Display) -> String {
        format!(
            "PE {me} has tried {} times within {:.1} s",
            self.n,
            self.elapsed().as_secs_f64()
        )
    }

    /// Returns the time since the first attempt began.
    pub fn elapsed(&self) -> Duration {
        self.first.elapsed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_and_attempts_end() {
        let limit = Duration::from_secs(2);
        let start = Instant::now();
        let mut attempts = Attempts::new(start);

        let mut now = start;
        let mut pauses = Vec::new();
        while attempts.record_refusal(now, limit) {
            pauses.push(attempts.next() - now);
            now = attempts.next();
        }

        assert!(now - start >= limit && now - start <= limit + LONGEST_PAUSE);
        assert!(pauses.is_sorted() && pauses[0] == FIRST_PAUSE);
        assert_eq!(pauses.last(), Some(&LONGEST_PAUSE));
        assert_eq!(attempts.n() as usize, pauses.len() + 1);
    }
}
