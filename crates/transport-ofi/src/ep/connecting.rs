//! The connections that an ep is making, and log events about them.
#![forbid(unsafe_code)]

use crate::permits::{ConnectionPermit, ConnectionPermits};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The number of operations that may begin on a connected PE with none in flight: more than an ep
/// has cells. The number for an unconnected PE is 0, so that fresh zeroed memory has the right
/// value.
pub(super) const CONNECTED: i32 = i32::MAX;

/// The text of the event that an attempt to reach a PE has failed and will be repeated.
pub(super) const AGAIN: &str = "connects once more";

/// A connection that is being made.
pub(super) struct BegunConnection {
    pub(super) pe: u32,
    /// The permit; `None` after it was returned because this connection takes long.
    pub(super) permit: Option<ConnectionPermit>,
    begun: Instant,
    /// The message that connects is in flight. False if the provider has not accepted it yet.
    pub(super) is_sent: bool,
}

/// The connections that an ep is making.
pub(super) struct Connecting {
    begun: Vec<BegunConnection>,
    /// An attempt to connect waits for a permit, and this was logged.
    waits: bool,
    /// The time for which a connection keeps its permit while the provider does not accept the
    /// message. Connections to stopped or ended peers must not keep all permits.
    permit_limit: Duration,
}

impl Connecting {
    pub(super) fn new(permit_limit: Duration) -> Connecting {
        Connecting {
            begun: Vec::new(),
            waits: false,
            permit_limit,
        }
    }

    /// Returns true if the message that connects to a PE is in flight.
    pub(super) fn is_sent(&self, pe: u32) -> bool {
        self.begun.iter().any(|one| one.pe == pe && one.is_sent)
    }

    /// Removes and returns the connection to a PE, if it is being made.
    pub(super) fn take(&mut self, pe: u32) -> Option<BegunConnection> {
        let index = self.begun.iter().position(|one| one.pe == pe)?;
        Some(self.begun.swap_remove(index))
    }

    /// Removes and returns the connection to a PE, if it is being made, without its permit if it
    /// takes long. Otherwise returns a new connection, or `None` if there is no permit.
    pub(super) fn take_or_begin(
        &mut self,
        pe: u32,
        permits: &Arc<ConnectionPermits>,
    ) -> Option<BegunConnection> {
        let Some(mut known) = self.take(pe) else {
            let permit = Some(permits.take()?);
            return Some(BegunConnection {
                pe,
                permit,
                begun: Instant::now(),
                is_sent: false,
            });
        };
        if known.begun.elapsed() >= self.permit_limit {
            known.permit = None;
        }
        Some(known)
    }

    /// Adds a connection that is being made.
    pub(super) fn keep(&mut self, connection: BegunConnection) {
        self.waits = false;
        self.begun.push(connection);
    }

    /// Records that an attempt waits for a permit. Returns true if none has waited since a
    /// connection was last added.
    pub(super) fn start_waiting(&mut self) -> bool {
        !std::mem::replace(&mut self.waits, true)
    }
}

/// Logs the event `what` of a connection to a PE, and its reason.
pub(super) fn report(pe: u32, why: &str, what: &str) {
    rushmem_log::debug!(peer = pe, "{what}: {why}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::permits::MAX_AT_ONCE;

    #[test]
    fn peers_that_do_not_answer_lose_their_permits() {
        for (limit, has_permits) in [(Duration::ZERO, true), (Duration::MAX, false)] {
            let permits = Arc::new(ConnectionPermits::default());
            let mut connecting = Connecting::new(limit);
            for pe in 0..MAX_AT_ONCE {
                let begun = connecting.take_or_begin(pe, &permits).expect("a permit");
                connecting.keep(begun);
            }
            assert!(
                connecting.take_or_begin(9, &permits).is_none(),
                "all permits are taken"
            );
            for pe in 0..MAX_AT_ONCE {
                let known = connecting
                    .take_or_begin(pe, &permits)
                    .expect("it is being made");
                connecting.keep(known);
            }
            assert_eq!(connecting.take_or_begin(9, &permits).is_some(), has_permits);
        }
    }
}
