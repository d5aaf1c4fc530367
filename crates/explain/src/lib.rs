//! Explains which PEs of a job wait for which, for oshrun and the watchdog.
//!
//! A PE writes a [`status::Status`] into the shared memory of its node when a wait lasts long. The
//! launcher, or a PE of the node, reads it without the help of the PE, adds what the kernel knows
//! of the process ([`collect::Collector`]), and explains the job from the snapshots of all PEs: a
//! table of what they do, and what each rule concludes. The rules read no memory and ask no kernel,
//! so jobs of any size can be constructed in tests.
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

use job::Job;
use snapshot::PeSnapshot;

/// Explains a job of `n_pes` PEs: a table, an empty line and the conclusion. Nothing is concluded
/// on PEs without a snapshot, which are on other hosts.
pub fn explain(n_pes: u32, snapshots: &[PeSnapshot]) -> String {
    let job = Job::new(n_pes, snapshots);
    let text = [table::table(&job), vec![String::new()], rules::conclusion(&job)];
    wrapped(&text.concat())
}

/// Returns the table alone.
pub fn table(n_pes: u32, snapshots: &[PeSnapshot]) -> String {
    wrapped(&table::table(&Job::new(n_pes, snapshots)))
}

fn wrapped(lines: &[String]) -> String {
    wording::wrapped(lines.iter().map(String::as_str), wording::COLUMNS)
}
