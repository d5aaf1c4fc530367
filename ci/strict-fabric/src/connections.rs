//! Connections of an endpoint, in profiles that need them: each takes a while to be set up, and two
//! of some attempts are refused, the first in the completion queue and another one at once. A
//! process may have a limited number of connections, and may set up only a few of them at once.

use crate::completions::{CompletedOp, Completions};
use crate::profile::Profile;
use libfabric_sys as fi;
use parking_lot::Mutex;
use std::collections::{HashMap, VecDeque};

/// Posts that fail with `FI_EAGAIN` while a connection is being set up.
const DELAY: u32 = 20;

/// The connections of a process.
#[derive(Default)]
pub(crate) struct ConnectionCounts {
    attempts: usize,
    open: usize,
    /// The number of connections that are being set up.
    begun: usize,
}

/// The outcome of a post to a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Passage {
    /// There is a connection.
    Open,
    /// The post fails with this result.
    Fails(isize),
    /// The post is accepted, and fails later since there is no connection.
    FailsLater,
    /// The post breaks a rule: this number of connections would be set up.
    Exceeds(usize),
}

/// The connections of an endpoint.
#[derive(Default)]
pub(crate) struct Connections {
    /// By peer: how many posts are to fail yet.
    delays: HashMap<usize, u32>,
    /// Operations whose connections are refused.
    refused: VecDeque<CompletedOp>,
}

impl Connections {
    /// Returns what becomes of a post to a peer.
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
            let Some(less) = delay.checked_sub(1) else { return Passage::Open };
            *delay = less;
            if less == 0 {
                counts.lock().begun -= 1;
            }
            return AGAIN;
        }
        let mut counts = counts.lock();
        let turn = counts.attempts % profile.connection_attempts;
        let is_later = turn == 0;
        counts.attempts += 1;
        let is_full = counts.open == profile.max_connections;
        if !is_later && (turn == profile.connection_attempts / 2 || is_full) {
            return Passage::Fails(-(fi::FI_ECONNREFUSED as isize));
        }
        counts.begun += 1;
        if counts.begun > profile.max_begun_connections {
            return Passage::Exceeds(counts.begun);
        }
        if is_later {
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

    /// Closes them.
    pub(crate) fn close(&mut self, counts: &Mutex<ConnectionCounts>) {
        let mut counts = counts.lock();
        counts.open -= self.delays.len();
        let delayed = self.delays.values().filter(|delay| **delay > 0).count();
        counts.begun -= delayed + self.refused.len();
        self.delays.clear();
        self.refused.clear();
    }
}
