//! The table: one line for all PEs in the same situation.

use crate::job::{Job, Situation};
use crate::ranges;
use crate::snapshot::{PeSnapshot, ProcessState};
use std::cmp::Reverse;

/// Lines of the table at most.
const LINES: usize = 25;

/// Returns the lines of the table, those of most PEs first. Where they are too many, PEs that wait
/// for different objects in the same call are in one line.
pub fn table(job: &Job) -> Vec<String> {
    let all = job.all(|_| true);
    let mut rows = ranges::fold(&all, |pe| text(job, pe, true));
    if rows.len() > LINES {
        rows = ranges::fold(&all, |pe| text(job, pe, false));
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
fn text(job: &Job, pe: u32, with_objects: bool) -> String {
    let of = &job.pes[pe as usize];
    match of.situation {
        Situation::Waits(_) if of.is_busy() => {
            job.waits(pe, with_objects) + ", while other threads compute"
        }
        Situation::Waits(_) => job.waits(pe, with_objects),
        situation => situation.predicate(2),
    }
}

fn line(job: &Job, (text, pes): &(String, Vec<u32>)) -> String {
    let names = ranges::counted(pes);
    match job.pes[pes[0] as usize].situation {
        Situation::Waits(_) => format!("{names} {text}, for {}", job.durations(pes)),
        situation => format!("{names} {}{}", situation.predicate(pes.len()), cpu_time(job, pes)),
    }
}

/// Returns the CPU time of PEs that compute.
fn cpu_time(job: &Job, pes: &[u32]) -> String {
    let percent =
        |pe: &u32| match (job.pes[*pe as usize].situation, job.pes[*pe as usize].snapshot?) {
            (
                Situation::Computes,
                PeSnapshot { process: ProcessState::Runs { cpu_ms, of_ms }, .. },
            ) => Some(100 * cpu_ms / (*of_ms).max(1)),
            _ => None,
        };
    let each = if pes.len() == 1 { "" } else { " each" };
    let percents = || pes.iter().filter_map(percent);
    match (percents().min(), percents().max()) {
        (Some(min), Some(max)) if min == max => format!(" ({max} % of a CPU{each})"),
        (Some(min), Some(max)) => format!(" ({min}-{max} % of a CPU{each})"),
        _ => String::new(),
    }
}
