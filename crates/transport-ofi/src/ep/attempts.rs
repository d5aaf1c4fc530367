//! Attempts to reach a PE that the provider has refused: they are repeated, with pauses, until some
//! time has passed. Where many PEs connect over one NIC at once, some attempts fail.

use super::{FiEndpoint, Post};
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
/// The first pause; each is twice as long as the one before, up to the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(1);
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
}

impl FiEndpoint {
    /// What became of an operation on a PE that libfabric has refused with this code.
    pub(super) fn refused_towards(&mut self, pe: u32, code: i32) -> Result<Post, i32> {
        let may_connect = NOT_CONNECTED.contains(&-code);
        if !may_connect || !self.attempts.refused(pe, Instant::now()) {
            return Err(code);
        }
        let why = self.strerror(code);
        rushmem_log::debug!(peer = pe, "{why}: connects once more");
        Ok(Post::Later)
    }

    /// Whether the next attempt at a PE has to wait.
    pub(crate) fn pauses(&self, pe: u32) -> bool {
        self.attempts.by_pe.get(&pe).is_some_and(|refused| Instant::now() < refused.next)
    }

    /// libfabric's words for a code with which an operation on a PE was refused at last.
    pub(crate) fn why_refused(&self, pe: u32, code: i32) -> String {
        let why = self.strerror(code);
        match self.attempts.by_pe.get(&pe).filter(|_| NOT_CONNECTED.contains(&-code)) {
            Some(Refused { n, first, .. }) => {
                format!("{why} (attempt {n}, after {:.1} s)", first.elapsed().as_secs_f64())
            }
            None => why,
        }
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
