//! Refused attempts to reach PEs: the codes after which an attempt is repeated, and for how long.

use libfabric_sys as fi;
use rushmem_connect::Attempts;
use std::time::{Duration, Instant};

/// The codes that mean that a connection was not made.
const NOT_CONNECTED: [i32; 5] = [
    fi::FI_ECONNREFUSED,
    fi::FI_ECONNABORTED,
    fi::FI_ETIMEDOUT,
    fi::FI_EHOSTDOWN,
    fi::FI_EHOSTUNREACH,
];
/// Further codes that mean the same if the message that connects to a PE fails with them.
const NOT_CONNECTED_AT_FIRST: [i32; 5] = [
    fi::FI_ECONNRESET,
    fi::FI_ENOTCONN,
    fi::FI_ENETDOWN,
    fi::FI_ENETUNREACH,
    libc::EPIPE,
];

/// The refused attempts, by PE.
pub(super) struct RefusedAttempts {
    by_pe: Vec<(u32, Attempts)>,
    /// The time for which attempts to reach a PE are repeated.
    limit: Duration,
}

impl RefusedAttempts {
    pub(super) fn new(limit: Duration) -> RefusedAttempts {
        RefusedAttempts {
            by_pe: Vec::new(),
            limit,
        }
    }

    /// Records that an attempt to reach a PE was refused. Returns true if another attempt is to be
    /// made.
    fn record(&mut self, pe: u32, now: Instant) -> bool {
        let known = self.by_pe.iter().position(|(known, _)| *known == pe);
        let known = known.unwrap_or_else(|| {
            self.by_pe.push((pe, Attempts::new(now)));
            self.by_pe.len() - 1
        });
        let attempts = &mut self.by_pe[known].1;
        if now.saturating_duration_since(attempts.next()) > self.limit {
            // No attempt was refused for long, so the PE must have been reached meanwhile.
            *attempts = Attempts::new(now);
        }
        attempts.record_refusal(now, self.limit)
    }

    /// Returns the refused attempts to reach a PE.
    fn of(&self, pe: u32) -> Option<&Attempts> {
        self.by_pe
            .iter()
            .find(|(known, _)| *known == pe)
            .map(|(_, attempts)| attempts)
    }

    /// Records that a PE was reached.
    pub(super) fn record_reached(&mut self, pe: u32) {
        self.by_pe.retain(|(known, _)| *known != pe);
    }

    /// Records that an operation on a PE was refused with this code. Returns true if another
    /// attempt is to be made.
    pub(super) fn record_refusal(&mut self, pe: u32, code: i32) -> bool {
        NOT_CONNECTED.contains(&-code) && self.record(pe, Instant::now())
    }

    /// Records that the message that connects to a PE has failed with this code. Returns true if
    /// another one is to be sent.
    pub(super) fn record_refused_connect(&mut self, pe: u32, code: i32) -> bool {
        means_not_connected(code) && self.record(pe, Instant::now())
    }

    /// Returns true if it is too early for the next attempt to reach a PE.
    pub(super) fn pauses(&self, pe: u32) -> bool {
        self.of(pe)
            .is_some_and(|attempts| Instant::now() < attempts.next())
    }

    /// Returns the number and the duration of the refused attempts to reach a PE, if this code
    /// means that there is no connection.
    pub(super) fn made(&self, pe: u32, code: i32) -> Option<(u32, Duration)> {
        let attempts = self.of(pe).filter(|_| means_not_connected(code));
        attempts.map(|attempts| (attempts.n(), attempts.elapsed()))
    }
}

/// Returns true if this code means that there is no connection when the message that connects to a
/// PE fails with it.
fn means_not_connected(code: i32) -> bool {
    NOT_CONNECTED.contains(&-code) || NOT_CONNECTED_AT_FIRST.contains(&-code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_pe_has_its_own_attempts() {
        let (limit, start) = (Duration::from_secs(2), Instant::now());
        let mut attempts = RefusedAttempts::new(limit);
        let mut now = start;
        while attempts.record(3, now) {
            now = attempts.of(3).expect("it was refused").next();
        }
        assert!(!attempts.record(3, now) && attempts.record(4, now));
        assert!(
            attempts.record(3, now + 2 * limit),
            "it was reached meanwhile"
        );
        attempts.record_reached(3);
        assert!(attempts.of(3).is_none() && attempts.of(4).is_some());
    }
}
