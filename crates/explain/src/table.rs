//! The table: one line for all PEs in the same situation.

use crate::job::{Detail, Job, Situation};
use crate::ranges;
use std::cmp::Reverse;

/// Lines of the table at most.
const LINES: usize = 25;

/// Returns the lines of the table of these PEs, those of most PEs first. Where they are too many,
/// PEs that wait for different objects in the same call are in one line.
pub fn table(job: &Job, pes: &[u32]) -> Vec<String> {
    let mut rows = ranges::fold(pes, |pe| text(job, pe, Detail::Peers));
    if rows.len() > LINES {
        rows = ranges::fold(pes, |pe| text(job, pe, Detail::Calls));
    }
    rows.sort_by_key(|(_, pes)| Reverse(pes.len()));
    let shown = if rows.len() > LINES { LINES - 1 } else { rows.len() };
    let mut lines: Vec<String> = rows[..shown].iter().map(|row| line(job, row)).collect();
    if shown < rows.len() {
        let rest: Vec<u32> = rows[shown..].iter().flat_map(|(_, pes)| pes).copied().collect();
        let (n, rest) = (rows.len() - shown, ranges::counted(&ranges::sorted(&rest)));
        lines.push(format!("{rest} in {n} other situations"));
    }
    lines
}

/// Returns what a PE does, in the same words for all that do so.
fn text(job: &Job, pe: u32, detail: Detail) -> String {
    let of = &job.pes[pe as usize];
    match of.situation {
        Situation::Waits(_) if of.is_busy() => {
            job.waits(pe, detail) + ", while other threads compute"
        }
        Situation::Waits(_) => job.waits(pe, detail),
        situation => situation.predicate(2),
    }
}

fn line(job: &Job, (text, pes): &(String, Vec<u32>)) -> String {
    let names = ranges::counted(pes);
    match job.pes[pes[0] as usize].situation {
        Situation::Waits(_) => format!("{names} {text}{}", job.lasting(pes)),
        _ => format!("{names} {}", job.predicate(pes)),
    }
}
