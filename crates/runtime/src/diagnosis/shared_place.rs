//! The place in the program at which PEs of a machine wait: one of them finds it for all whose
//! stacks are equal, since reading debug information takes up to a second of a CPU, and dozens of
//! megabytes.

use crate::diagnosis::machine::{self, Statuses};
use crate::job;
use rushmem_explain::status::Search;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The interval between two looks at the statuses of the machine. PEs that begin to search at the
/// same time also show this to each other within this time.
const PERIOD: Duration = Duration::from_millis(50);

/// The time for which a PE lets another one search.
const LIMIT: Duration = Duration::from_secs(10);

/// Waits until another PE of this machine has searched for the place of a call with the same stack.
/// Returns what it has found. Returns `None` if this PE is to search: of the searches that are not
/// over, its own began first.
pub(super) fn found_by_peer(own: Search) -> Option<Option<String>> {
    let job = job::known()?;
    let Statuses { collector, pes } = machine::statuses()?;
    let until = Instant::now() + LIMIT;
    loop {
        sleep(PERIOD);
        let mut is_first = true;
        for pe in pes.iter().filter(|pe| pe.pe != job.me.0) {
            let waits = collector.status(pe.local).map_or(Vec::new(), |status| status.waits);
            for wait in waits {
                match wait.search.filter(|search| search.stack == own.stack) {
                    Some(Search { is_over: true, .. }) => return Some(wait.called_at),
                    Some(other) => is_first &= (own.since, job.me.0) < (other.since, pe.pe),
                    None => {}
                }
            }
        }
        if is_first || Instant::now() >= until {
            return None;
        }
    }
}
