//! Attempts to reach a PE that the provider has refused: they are repeated, with pauses, until some
//! time has passed. Where many PEs connect over one NIC at once, some attempts fail.

use libfabric_sys as fi;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// The codes of a connection that was not made.
const NOT_CONNECTED: [i32; 5] = [
    fi::FI_ECONNREFUSED,
    fi::FI_ECONNABORTED,
    fi::FI_ETIMEDOUT,
    fi::FI_EHOSTDOWN,
    fi::FI_EHOSTUNREACH,
];
/// The first pause; each is twice as long as the one before.
const FIRST_PAUSE: Duration = Duration::from_millis(1);
/// The longest pause.
const LONGEST_PAUSE: Duration = Duration::from_millis(250);

/// The attempts to reach PEs that were refused.
pub(super) struct Attempts {
    by_pe: BTreeMap<u32, Refused>,
    /// How long a PE is tried.
    limit: Duration,
}

/// Attempts to reach one PE.
struct Refused {
    first: Instant,
    n: u32,
    pause: Duration,
    next: Instant,
}

impl Attempts {
    pub(super) fn new(limit: Duration) -> Attempts {
        Attempts { by_pe: BTreeMap::new(), limit }
    }

    /// An attempt at a PE was refused; whether there is to be another one.
    fn refused(&mut self, pe: u32, now: Instant) -> bool {
        let new = || Refused { first: now, n: 0, pause: FIRST_PAUSE, next: now };
        let refused = self.by_pe.entry(pe).or_insert_with(new);
        if now.duration_since(refused.next) > self.limit {
            // The PE was reached since.
            *refused = new();
        }
        refused.n += 1;
        refused.next = now + refused.pause;
        refused.pause = (2 * refused.pause).min(LONGEST_PAUSE);
        now.duration_since(refused.first) < self.limit
    }

    /// An attempt at a PE was refused with this code; whether there is to be another one.
    pub(super) fn go_on(&mut self, pe: u32, code: i32) -> bool {
        NOT_CONNECTED.contains(&-code) && self.refused(pe, Instant::now())
    }

    /// Whether the next attempt at a PE has to wait.
    pub(super) fn pauses(&self, pe: u32) -> bool {
        self.by_pe.get(&pe).is_some_and(|refused| Instant::now() < refused.next)
    }

    /// How many attempts at a PE were refused with this code, and for how long.
    pub(super) fn made(&self, pe: u32, code: i32) -> Option<(u32, Duration)> {
        let refused = self.by_pe.get(&pe).filter(|_| NOT_CONNECTED.contains(&-code));
        refused.map(|Refused { n, first, .. }| (*n, first.elapsed()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_and_attempts_end() {
        let (limit, start) = (Duration::from_secs(2), Instant::now());
        let mut attempts = Attempts::new(limit);
        let (mut now, mut pauses) = (start, Vec::new());
        while attempts.refused(3, now) {
            let next = attempts.by_pe[&3].next;
            pauses.push(next - now);
            now = next;
        }
        assert!(now - start >= limit && now - start <= limit + LONGEST_PAUSE);
        assert!(pauses.is_sorted() && pauses[0] == FIRST_PAUSE);
        assert_eq!(pauses.last(), Some(&LONGEST_PAUSE));
        assert!(!attempts.refused(3, now) && attempts.refused(4, now), "each PE has its own");
        assert!(attempts.refused(3, now + 2 * limit), "it was reached meanwhile");
    }
}
