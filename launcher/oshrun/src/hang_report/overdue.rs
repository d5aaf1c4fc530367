//! The waits that have lasted longer than `--explain-after`: each process looks once per second at
//! the statuses of its PEs.

use std::time::Duration;

use rushmem_explain::collect::LocalPe;
use rushmem_explain::snapshot::WaitId;
use tokio::time::{Interval, MissedTickBehavior};

use super::survey::NodeCollector;

/// Time between two looks for long waits.
const INTERVAL: Duration = Duration::from_secs(1);

/// Looks at the statuses of the PEs of this process.
#[derive(Debug)]
pub struct Watch {
    collector: NodeCollector,
    limit: Duration,
    looks: Interval,
    /// The long waits that were found before and have not ended.
    known: Vec<WaitId>,
}

impl Watch {
    /// Returns a search for waits that are older than `limit`.
    pub fn new(collector: NodeCollector, limit: Duration) -> Watch {
        let mut looks = tokio::time::interval(INTERVAL);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Watch { collector, limit, looks, known: Vec::new() }
    }

    /// Waits until it is time for a look. Cancel safe.
    pub async fn tick(watch: &mut Option<Watch>) {
        match watch {
            Some(watch) => drop(watch.looks.tick().await),
            None => std::future::pending().await,
        }
    }

    /// Returns the waits of these PEs that have become too old.
    pub fn look(&mut self, pes: &[LocalPe]) -> Vec<WaitId> {
        let waits = self.collector.long_waits(pes, self.limit);
        let known = std::mem::replace(&mut self.known, waits);
        self.known.iter().filter(|wait| !known.contains(wait)).copied().collect()
    }
}
