//! Ensures that two PEs have one connection, if either connects or both at once.
//!
//! A PE that connects sends a claim; the peer answers with a welcome or a deferral. Of two PEs that
//! connect to each other at once, the lower one defers the claim of the higher one, and the higher
//! one welcomes the claim of the lower one. A PE that welcomes a claim reserves that connection: it
//! opens no other one to the peer until the peer closes the reserved one. The welcomed peer opens
//! the connection at once and sends its first request; when this request arrives, the reserved
//! connection is open here, too. A deferred PE waits for the connection of the other one, and
//! claims again if none comes: the other PE may have ended.

use rushmem_connect::handshake::Answer;
use rushmem_transport::Pe;
use std::time::Instant;

/// The state of a peer to which a PE has no connection yet.
#[derive(Debug, Default)]
pub(crate) struct Establishment {
    /// A thread of this PE connects to the peer.
    is_connecting: bool,
    /// The peer's claim was welcomed.
    is_reserved: bool,
    /// Before this time the PE does not claim again, since it was deferred or gave up; `None` if it
    /// has not.
    deferred_until: Option<Instant>,
}

impl Establishment {
    /// Returns true if the calling thread, which needs a connection, is to connect.
    pub(crate) fn begin(&mut self, now: Instant) -> bool {
        let should = !self.is_reserved()
            && !self.is_connecting
            && self.deferred_until.is_none_or(|until| now >= until);

        self.is_connecting |= should;
        should
    }

    /// Records that the connecting thread was deferred or has given up.
    pub(crate) fn defer(&mut self, until: Instant) {
        self.is_connecting = false;
        self.deferred_until = Some(until);
    }

    /// Decides on the claim of PE `peer` at PE `me`.
    pub(crate) fn answer(&mut self, me: Pe, peer: Pe) -> Answer {
        if self.is_connecting && me < peer {
            return Answer::Deferral;
        }

        self.is_reserved = true;
        Answer::Welcome
    }

    /// Releases the reservation for a peer, since the reserved connection was closed or failed.
    pub(crate) fn release(&mut self) {
        self.is_reserved = false;
    }

    /// Returns true if a connection that the peer opens is reserved, so that no other is needed.
    pub(crate) fn is_reserved(&self) -> bool {
        self.is_reserved
    }
}

#[cfg(test)]
mod tests;
