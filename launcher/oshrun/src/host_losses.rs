//! The hosts that a try of a job has lost, and whether the job may be started again without them.

use std::collections::BTreeSet;
use std::time::Duration;

use tokio::time::Instant;

use crate::tree::wire::FailedHost;

/// The hosts that were lost, could not start their PEs or cannot end them.
#[derive(Debug)]
pub struct HostLosses {
    hosts: BTreeSet<String>,
    /// Whether another try is permitted.
    may_repeat: bool,
    /// Whether a host may be the reason why the job ends.
    is_reason: bool,
    /// When no PE runs on these hosts any more, nor on those behind them.
    cleared_at: Option<Instant>,
    host_limit: Duration,
}

impl HostLosses {
    /// No host is lost. `may_repeat`: this is not the last try.
    pub fn new(may_repeat: bool, host_limit: Duration) -> HostLosses {
        let (hosts, is_reason, cleared_at) = (BTreeSet::new(), false, None);
        HostLosses { hosts, may_repeat, is_reason, cleared_at, host_limit }
    }

    /// Records that a host cannot be used any more.
    pub fn add(&mut self, host: FailedHost) {
        self.hosts.insert(host.name);
        if host.may_run {
            self.cleared_at = Some(Instant::now() + self.host_limit);
        }
    }

    /// Records that the job ends for a reason that may be one of these hosts, even if its loss
    /// becomes known only later.
    pub fn may_be_reason(&mut self) {
        self.is_reason = true;
    }

    /// Records that the user ends the job.
    pub fn forbid(&mut self) {
        self.may_repeat = false;
    }

    /// When nothing of the job is left on these hosts, if that matters.
    pub fn cleared_at(&self) -> Option<Instant> {
        self.cleared_at.filter(|_| self.is_repeated())
    }

    /// The hosts without which the job is started again, if it is.
    pub fn take(&mut self) -> Option<BTreeSet<String>> {
        self.is_repeated().then(|| std::mem::take(&mut self.hosts))
    }

    /// Whether the job is started again if it ends now.
    pub fn is_repeated(&self) -> bool {
        self.may_repeat && self.is_reason && !self.hosts.is_empty()
    }
}
