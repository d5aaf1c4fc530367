//! Attempts to reach a PE that were refused: they are repeated, with pauses, until some time has
//! passed. Where many PEs connect over one NIC at once, some attempts fail.

use crate::Pe;
use std::time::{Duration, Instant};

/// The first pause; each is twice as long as the one before.
const FIRST_PAUSE: Duration = Duration::from_millis(1);
/// The longest pause.
const LONGEST_PAUSE: Duration = Duration::from_millis(250);

/// The attempts to reach one PE.
pub struct Attempts {
    first: Instant,
    n: u32,
    pause: Duration,
    next: Instant,
}

impl Attempts {
    /// Returns a record without attempts.
    pub fn new(now: Instant) -> Attempts {
        Attempts { first: now, n: 0, pause: FIRST_PAUSE, next: now }
    }

    /// Records a refusal. Returns true if another attempt is to be made within `limit` of the
    /// first.
    pub fn refused(&mut self, now: Instant, limit: Duration) -> bool {
        self.n += 1;
        self.next = now + self.pause;
        self.pause = (2 * self.pause).min(LONGEST_PAUSE);
        now.duration_since(self.first) < limit
    }

    /// Returns the time of the next attempt.
    pub fn next(&self) -> Instant {
        self.next
    }

    /// Returns how many attempts were refused.
    pub fn n(&self) -> u32 {
        self.n
    }

    /// Returns for the message of a loss what PE `me` has tried.
    pub fn tried(&self, me: Pe) -> String {
        format!(
            "PE {me} has tried {} times within {:.1} s; if the PE still runs there, set SHMEM_HOST_LIMIT \
             to a longer time",
            self.n,
            self.elapsed().as_secs_f64()
        )
    }

    /// Returns the time for which attempts have been made.
    pub fn elapsed(&self) -> Duration {
        self.first.elapsed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_and_attempts_end() {
        let (limit, start) = (Duration::from_secs(2), Instant::now());
        let mut attempts = Attempts::new(start);
        let (mut now, mut pauses) = (start, Vec::new());
        while attempts.refused(now, limit) {
            pauses.push(attempts.next() - now);
            now = attempts.next();
        }
        assert!(now - start >= limit && now - start <= limit + LONGEST_PAUSE);
        assert!(pauses.is_sorted() && pauses[0] == FIRST_PAUSE);
        assert_eq!(pauses.last(), Some(&LONGEST_PAUSE));
        assert_eq!(attempts.n() as usize, pauses.len() + 1);
    }
}
