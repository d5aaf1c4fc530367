//! How two PEs come to one connection, whoever connects, and if both do at once.
//!
//! A PE that is claimed welcomes or defers the claim. The lower of two PEs that connect to each other defers the claim of the
//! higher one, which welcomes its. A welcome is a promise: this PE opens no other connection to the peer until the
//! promise is void, because the peer has closed that connection. The peer that is welcomed opens the connection at once and sends its
//! first request; with this request the promise is kept, and the connection is open here. Whoever is deferred waits for the other's
//! connection, and claims again if it does not come: the other PE may have ended.
//!
//! This file must never know a socket.

use crate::proto::Answer;
use rushmem_transport::Pe;
use std::time::Instant;

/// What a PE knows of a peer to which it has no connection yet.
#[derive(Debug, Default)]
pub(crate) struct Meeting {
    /// A thread of this PE connects to the peer.
    connecting: bool,
    /// The peer's claim was welcomed.
    promised: bool,
    /// This PE was deferred, and does not claim again before.
    deferred_until: Option<Instant>,
}

impl Meeting {
    /// A thread wants to connect: whether it should.
    pub(crate) fn begin(&mut self, now: Instant) -> bool {
        let should = !self.is_promised()
            && !self.connecting
            && self.deferred_until.is_none_or(|until| now >= until);
        self.connecting |= should;
        should
    }

    /// That thread was deferred, or has given up.
    pub(crate) fn defer(&mut self, until: Instant) {
        self.connecting = false;
        self.deferred_until = Some(until);
    }

    /// Decides on the claim of PE `peer` at PE `me`.
    pub(crate) fn answer(&mut self, me: Pe, peer: Pe) -> Answer {
        if self.connecting && me < peer {
            return Answer::Deferral;
        }
        self.promised = true;
        Answer::Welcome
    }

    /// The peer has closed the connection that was promised to it.
    pub(crate) fn void(&mut self) {
        self.promised = false;
    }

    /// Whether a connection of the peer's is promised, so that no other is needed.
    pub(crate) fn is_promised(&self) -> bool {
        self.promised
    }
}

#[cfg(test)]
mod tests;
