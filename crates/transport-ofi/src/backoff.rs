//! How long to poll before letting others run, and before sleeping.

use crate::shared::Shared;
use std::thread;
use std::time::{Duration, Instant};

/// Looks without a pause: some milliseconds. What a long transfer moves meanwhile is no news here.
const LOOKS: u32 = 5_000;
/// Looks after which others may run.
const YIELDS: u32 = 100;
/// As above where PEs outnumber the CPUs.
const YIELDS_OVERSUBSCRIBED: u32 = 5;
/// A sleep: what is waited for may come without waking.
pub(crate) const NAP: Duration = Duration::from_micros(50);
/// After so long without news the peer counts as unconfirmed, and again.
const UNCONFIRMED_AFTER: Duration = Duration::from_secs(1);

/// One wait.
#[derive(Default)]
pub(crate) struct Backoff {
    looks: u32,
    since: Option<Instant>,
}

impl Backoff {
    /// Between two looks. Whether the wait is so long that the peer counts as unconfirmed.
    pub(crate) fn pause(&mut self, shared: &Shared) -> bool {
        self.looks += 1;
        let (looks, yields) = match shared.oversubscribed {
            true => (0, YIELDS_OVERSUBSCRIBED),
            false => (LOOKS, YIELDS),
        };
        if self.looks <= looks {
            return false;
        }
        if self.looks <= looks + yields {
            thread::yield_now();
            return false;
        }
        shared.sleep(NAP);
        let since = *self.since.get_or_insert_with(Instant::now);
        let unconfirmed = since.elapsed() > UNCONFIRMED_AFTER;
        if unconfirmed {
            self.since = None;
        }
        unconfirmed
    }

    /// There was news: look on.
    pub(crate) fn renew(&mut self) {
        *self = Backoff::default();
    }
}
