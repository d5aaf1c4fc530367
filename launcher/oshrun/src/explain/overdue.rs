//! The waits that have lasted longer than `--explain-after`: each process looks once per second at
//! the statuses of its PEs.

use std::collections::HashSet;
use std::time::Duration;

use rushmem_explain::report::PeReport;
use serde::{Deserialize, Serialize};
use tokio::time::{Interval, MissedTickBehavior};

use super::memory::NodeStatuses;
use super::survey::{RunningPe, now};

/// Time between two looks for long waits.
const INTERVAL: Duration = Duration::from_secs(1);

/// A wait of a thread of a PE.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct WaitId {
    /// The PE.
    pub pe: u32,
    /// The thread.
    pub thread: u32,
    /// When it began, by the clock of its host.
    pub since: u64,
}

/// The waits in a report, each with its age.
pub fn waits(report: &PeReport) -> impl Iterator<Item = (WaitId, Duration)> {
    report.status.iter().flat_map(|status| &status.waits).map(|wait| {
        let id = WaitId { pe: report.pe, thread: wait.thread, since: wait.since };
        (id, Duration::from_nanos(report.read_at.saturating_sub(wait.since)))
    })
}

/// Looks at the statuses of the PEs of this process.
#[derive(Debug)]
pub struct Watch {
    statuses: NodeStatuses,
    limit: Duration,
    looks: Interval,
    /// The long waits that were found before and have not ended.
    known: HashSet<WaitId>,
}

impl Watch {
    /// Will find waits that are older than `limit`.
    pub fn new(statuses: NodeStatuses, limit: Duration) -> Watch {
        let mut looks = tokio::time::interval(INTERVAL);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Watch { statuses, limit, looks, known: HashSet::new() }
    }

    /// Waits until it is time for a look. Cancel safe.
    pub async fn tick(watch: &mut Option<Watch>) {
        match watch {
            Some(watch) => drop(watch.looks.tick().await),
            None => std::future::pending().await,
        }
    }

    /// The waits of these PEs that have become too old.
    pub fn look(&mut self, pes: &[RunningPe]) -> Vec<WaitId> {
        let mut known = HashSet::new();
        let mut new = Vec::new();
        for pe in pes {
            let now = now();
            for wait in self.statuses.of(pe.local).into_iter().flat_map(|status| status.waits) {
                if Duration::from_nanos(now.saturating_sub(wait.since)) >= self.limit {
                    let id = WaitId { pe: pe.pe, thread: wait.thread, since: wait.since };
                    if !self.known.contains(&id) {
                        new.push(id);
                    }
                    known.insert(id);
                }
            }
        }
        self.known = known;
        new
    }
}
