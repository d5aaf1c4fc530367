//! Explains which PEs of a job wait for which, for oshrun and the watchdog.
//!
//! A PE writes a [`status::Status`] into the shared memory of its node when a wait lasts long. The
//! launcher, or a PE of the node, reads it without the help of the PE, adds what the kernel knows
//! of the process ([`collect::Collector`]), and explains the job from the snapshots of all PEs: what
//! each rule concludes, and a table of what the other PEs do. The rules read no memory and ask no
//! kernel, so jobs of any size can be constructed in tests.
#![forbid(unsafe_code)]

mod cause;
pub mod collect;
mod graph;
mod job;
pub mod process;
pub mod ranges;
mod rules;
pub mod snapshot;
pub mod status;
pub mod status_slot;
mod steps;
mod symbols;
mod table;
pub mod wording;
mod words;
pub mod writes;

use job::{Description, Job};
use snapshot::PeSnapshot;
use std::collections::HashSet;

/// Explains a job of `n_pes` PEs: the conclusion, and behind an empty line a table of the PEs of
/// which it does not say what they do, if there are any. Nothing is concluded on PEs without a
/// snapshot, which are on other hosts.
pub fn explain(n_pes: u32, snapshots: &[PeSnapshot]) -> String {
    let job = Job::new(n_pes, snapshots);
    let Description { sentences: mut lines, told } = rules::conclusion(&job);
    let told: HashSet<u32> = told.into_iter().collect();
    let others: Vec<u32> = (0..n_pes).filter(|pe| !told.contains(pe)).collect();
    if !others.is_empty() {
        lines.push(String::new());
        lines.extend(table::table(&job, &others));
    }
    wrapped(&lines)
}

/// Returns a table of what all PEs do.
pub fn table(n_pes: u32, snapshots: &[PeSnapshot]) -> String {
    let job = Job::new(n_pes, snapshots);
    wrapped(&table::table(&job, &job.all(|_| true)))
}

fn wrapped(lines: &[String]) -> String {
    wording::wrapped(lines.iter().map(String::as_str), wording::COLUMNS)
}
