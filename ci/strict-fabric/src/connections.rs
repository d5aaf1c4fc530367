//! Connections of an endpoint, in profiles that need them. While a connection is set up, some posts
//! fail with `FI_EAGAIN`. Of every `connection_attempts` attempts of the domain, two are refused:
//! the first by an entry in the completion queue, and one in the middle by the result of the post
//! (a single attempt by an entry). A domain may have a limited number of connections, and may set
//! up only a few of them at once.

use crate::operation::{CompletedOp, Completions};
use crate::profile::Profile;
use libfabric_sys as fi;
use parking_lot::Mutex;
use std::collections::{HashMap, VecDeque};

/// The number of posts that fail with `FI_EAGAIN` after the one that began to set up a connection.
const DELAY: u32 = 20;

/// The numbers of connections of a domain, over all of its endpoints.
#[derive(Default)]
pub(crate) struct ConnectionCounts {
    attempts: usize,
    open: usize,
    /// The number of connections that are being set up, or whose refusal was not reported yet.
    begun: usize,
}

/// The outcome of a post to a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Passage {
    /// The post is accepted: there is a connection, or the profile needs none.
    Open,
    /// The post fails with this result.
    Fails(isize),
    /// The post is accepted, but fails in the completion queue, since the connection is refused.
    FailsLater,
    /// The post exceeds the limit of the profile: this number of connections would be set up at
    /// once.
    Exceeds(usize),
}

/// The connections of an endpoint.
#[derive(Default)]
pub(crate) struct Connections {
    /// By peer: the number of posts that still fail; 0 once the connection is set up.
    delays: HashMap<usize, u32>,
    /// Operations whose connections are refused.
    refused: VecDeque<CompletedOp>,
}

impl Connections {
    /// Returns the outcome of a post to a peer, and counts the attempt to connect if it makes one.
    pub(crate) fn pass(
        &mut self,
        profile: &Profile,
        counts: &Mutex<ConnectionCounts>,
        peer: usize,
    ) -> Passage {
        const AGAIN: Passage = Passage::Fails(-(fi::FI_EAGAIN as isize));
        if profile.max_connections == 0 {
            return Passage::Open;
        }

        if let Some(delay) = self.delays.get_mut(&peer) {
            if *delay == 0 {
                return Passage::Open;
            }
            *delay -= 1;
            if *delay == 0 {
                counts.lock().begun -= 1;
            }
            return AGAIN;
        }

        let mut counts = counts.lock();
        let turn = counts.attempts % profile.connection_attempts;
        counts.attempts += 1;
        let fails_later = turn == 0;
        if !fails_later {
            let is_full = counts.open == profile.max_connections;
            if is_full || turn == profile.connection_attempts / 2 {
                return Passage::Fails(-(fi::FI_ECONNREFUSED as isize));
            }
        }

        // A connection that is refused later is being set up until then.
        counts.begun += 1;
        if counts.begun > profile.max_begun_connections {
            return Passage::Exceeds(counts.begun);
        }
        if fails_later {
            return Passage::FailsLater;
        }
        counts.open += 1;
        self.delays.insert(peer, DELAY);
        AGAIN
    }

    /// Records an accepted operation that fails later.
    pub(crate) fn fail_later(&mut self, operation: CompletedOp) {
        self.refused.push_back(operation);
    }

    /// Reports operations whose connections are refused.
    pub(crate) fn progress(
        &mut self,
        counts: &Mutex<ConnectionCounts>,
        completions: &mut Completions,
    ) {
        for operation in self.refused.drain(..) {
            counts.lock().begun -= 1;
            completions.fail(operation, fi::FI_ECONNREFUSED);
        }
    }

    /// Closes all connections of the endpoint.
    pub(crate) fn close(&mut self, counts: &Mutex<ConnectionCounts>) {
        let n_delayed = self.delays.values().filter(|delay| **delay > 0).count();
        let mut counts = counts.lock();
        counts.open -= self.delays.len();
        counts.begun -= n_delayed + self.refused.len();
        self.delays.clear();
        self.refused.clear();
    }
}
