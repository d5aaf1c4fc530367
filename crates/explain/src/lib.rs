//! Explains why a job hangs: which PEs wait for which. `oshrun` and the watchdog of the runtime use
//! it.
//!
//! A PE writes a [`status::Status`] into the shared memory of its node when its stage changes and
//! when a wait lasts long. The launcher, or a PE of the node, reads the status without the help of
//! the PE and adds what the kernel knows of the process ([`collect::Collector`]). From these
//! snapshots of all PEs it explains the job: the conclusions of the rules, and a table of what the
//! other PEs do. The rules are pure functions of the snapshots, so tests can construct jobs of any
//! size.
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
pub mod wording;
pub mod writes;

use job::{Description, Detail, Job, ObservedState};
use ranges::Group;
use snapshot::PeSnapshot;
use std::cmp::Reverse;
use std::collections::HashSet;

/// The digest of the sources of this crate, which must be equal on all PEs of a job.
pub const SOURCES: u64 = rushmem_derive::digest_of_sources!();

/// Explains a job of `n_pes` PEs: the conclusion, and after an empty line a table of those PEs that
/// the conclusion does not describe, if there are any. PEs without a snapshot count as PEs on other
/// hosts, of which nothing is known.
pub fn explain(n_pes: u32, snapshots: &[PeSnapshot]) -> String {
    let job = Job::new(n_pes, snapshots);
    let Description {
        sentences: mut lines,
        described,
    } = rules::conclusion(&job);

    let described: HashSet<u32> = described.into_iter().collect();
    let others: Vec<u32> = (0..n_pes).filter(|pe| !described.contains(pe)).collect();
    if !others.is_empty() {
        lines.push(String::new());
        lines.extend(table_lines(&job, &others));
    }
    wrapped(&lines)
}

/// Returns a table of what all PEs do.
pub fn table(n_pes: u32, snapshots: &[PeSnapshot]) -> String {
    let job = Job::new(n_pes, snapshots);
    wrapped(&table_lines(&job, &job.all(|_| true)))
}

fn wrapped(lines: &[String]) -> String {
    wording::wrapped(lines.iter().map(String::as_str), wording::COLUMNS)
}

/// Maximum number of lines of the table.
const LINES: usize = 25;

/// Returns the lines of the table of these PEs: one line for all PEs in the same state, the
/// line with the most PEs first. If there are too many lines, PEs that wait for different objects
/// in the same call share a line; if there are still too many, the last line counts the rest.
fn table_lines(job: &Job, pes: &[u32]) -> Vec<String> {
    let mut rows = ranges::group_by(pes, |pe| text(job, pe, Detail::Peers));
    if rows.len() > LINES {
        rows = ranges::group_by(pes, |pe| text(job, pe, Detail::Calls));
    }
    rows.sort_by_key(|row| Reverse(row.pes.len()));

    let shown = if rows.len() > LINES {
        LINES - 1
    } else {
        rows.len()
    };
    let rest = rows.split_off(shown);

    let mut lines: Vec<String> = rows.iter().map(|row| line(job, row)).collect();
    if !rest.is_empty() {
        let pes: Vec<u32> = rest.iter().flat_map(|row| &row.pes).copied().collect();
        let names = ranges::counted(&ranges::sorted(&pes));
        lines.push(format!("{names} in {} other situations", rest.len()));
    }
    lines
}

/// Describes what a PE does, in the same words for all PEs that do the same.
fn text(job: &Job, pe: u32, detail: Detail) -> String {
    let observed = &job.pes[pe as usize];
    match observed.state {
        ObservedState::Waits(_) if observed.is_busy() => {
            job.waits(pe, detail) + ", while other threads compute"
        }
        ObservedState::Waits(_) => job.waits(pe, detail),
        _ => job.activity(pe, 2),
    }
}

fn line(job: &Job, row: &Group<String>) -> String {
    let Group { key: text, pes } = row;
    let names = ranges::counted(pes);
    // The text of waits has no number: it is the same for one PE and for many.
    if job.pes[pes[0] as usize].is_waiting() {
        format!("{names} {text}{}", job.lasting(pes))
    } else {
        format!("{names} {}", job.predicate(pes))
    }
}
