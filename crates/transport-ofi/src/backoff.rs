//! How long to poll before letting others run, and before sleeping.

use crate::shared::Shared;
use std::thread;
use std::time::{Duration, Instant};

/// Polls without a pause: some milliseconds. What a long transfer moves meanwhile is no news here.
const POLLS: u32 = 5_000;
/// Polls after which others may run.
const YIELDS: u32 = 100;
/// As above where PEs outnumber the CPUs.
const YIELDS_OVERSUBSCRIBED: u32 = 5;
/// A sleep: what is waited for may come without waking.
pub(crate) const SLEEP: Duration = Duration::from_micros(50);
/// After so long without news the peer counts as unconfirmed, and again.
const UNCONFIRMED_AFTER: Duration = Duration::from_secs(1);

/// One wait.
#[derive(Default)]
pub(crate) struct Backoff {
    polls: u32,
    since: Option<Instant>,
}

impl Backoff {
    /// Between two polls. Whether the wait is so long that the peer counts as unconfirmed.
    pub(crate) fn pause(&mut self, shared: &Shared) -> bool {
        self.polls += 1;
        let (polls, yields) = match shared.oversubscribed {
            true => (0, YIELDS_OVERSUBSCRIBED),
            false => (POLLS, YIELDS),
        };
        if self.polls <= polls {
            return false;
        }
        if self.polls <= polls + yields {
            thread::yield_now();
            return false;
        }
        shared.sleep(SLEEP);
        let since = *self.since.get_or_insert_with(Instant::now);
        let unconfirmed = since.elapsed() > UNCONFIRMED_AFTER;
        if unconfirmed {
            self.since = None;
        }
        unconfirmed
    }

    /// There was news: poll on.
    pub(crate) fn renew(&mut self) {
        *self = Backoff::default();
    }
}
