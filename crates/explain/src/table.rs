//! The table: one line for all PEs in the same situation.

use crate::job::{Job, Pe};
use crate::ranges;
use crate::report::ProcessState;
use crate::situation::{Situation, age};
use crate::wording;
use std::collections::HashMap;

/// Lines of the table at most.
const LINES: usize = 25;

/// PEs in the same situation.
struct Row<'a> {
    pes: Vec<u32>,
    /// What they do, after their names.
    text: String,
    /// The same without objects and values, for tables that become too long.
    coarse: String,
    situation: Situation<'a>,
    ages: Option<(u64, u64)>,
    cpu_percent: Option<(u64, u64)>,
}

/// The lines of the table, those of most PEs first.
pub fn table(job: &Job) -> Vec<String> {
    let mut rows = merge((0..).zip(&job.pes).map(|(pe, of)| row(job, pe, of)));
    if rows.len() > LINES {
        rows = merge(rows.into_iter().map(coarse));
    }
    rows.sort_by_key(|row| (std::cmp::Reverse(row.pes.len()), row.pes[0]));
    let shown = if rows.len() > LINES { LINES - 1 } else { rows.len() };
    let mut lines: Vec<String> = rows[..shown].iter().map(line).collect();
    if shown < rows.len() {
        let mut rest: Vec<u32> = rows[shown..].iter().flat_map(|row| &row.pes).copied().collect();
        rest.sort_unstable();
        let n = rows.len() - shown;
        lines.push(format!("{} in {n} other situations", ranges::counted(&rest)));
    }
    lines
}

fn row<'a>(job: &Job, pe: u32, of: &Pe<'a>) -> Row<'a> {
    let (mut text, coarse) = match of.situation {
        Situation::Waits(_) => (wording::waits(job, of), wording::calls(of)),
        other => (other.predicate(2), other.predicate(2)),
    };
    if of.is_busy() {
        text += ", while other threads compute";
    }
    let ages =
        of.report.into_iter().flat_map(|report| of.waits().map(|(wait, _)| age(report, wait)));
    let ages = ages.fold(None, |range, age| Some(widened(range, (age, age))));
    let cpu_percent = match of.report.map(|report| &report.process) {
        Some(ProcessState::Runs { cpu_ms, of_ms }) => {
            let percent = 100 * cpu_ms / (*of_ms).max(1);
            Some((percent, percent))
        }
        _ => None,
    };
    Row { pes: vec![pe], text, coarse, situation: of.situation, ages, cpu_percent }
}

fn line(row: &Row) -> String {
    let pes = ranges::counted(&row.pes);
    match (row.situation, row.ages, row.cpu_percent) {
        (Situation::Waits(_), Some(ages), _) => {
            format!("{pes} {}, for {}", row.text, wording::durations(ages))
        }
        (Situation::Computes, _, Some((min, max))) => {
            let each = if row.pes.len() == 1 { "" } else { " each" };
            let range = if min == max { max.to_string() } else { format!("{min}-{max}") };
            format!("{pes} {} ({range} % of a CPU{each})", row.situation.predicate(row.pes.len()))
        }
        (situation, _, _) => format!("{pes} {}", situation.predicate(row.pes.len())),
    }
}

/// The row without objects and values.
fn coarse(mut row: Row<'_>) -> Row<'_> {
    row.text.clone_from(&row.coarse);
    row
}

/// Merges rows of the same text. PEs stay in ascending order.
fn merge<'a>(rows: impl Iterator<Item = Row<'a>>) -> Vec<Row<'a>> {
    let mut merged: Vec<Row> = Vec::new();
    let mut of_key: HashMap<String, usize> = HashMap::new();
    for row in rows {
        match of_key.get(&row.text) {
            Some(&index) => merged[index].absorb(row),
            None => {
                of_key.insert(row.text.clone(), merged.len());
                merged.push(row);
            }
        }
    }
    for row in &mut merged {
        row.pes.sort_unstable();
    }
    merged
}

impl<'a> Row<'a> {
    fn absorb(&mut self, other: Row<'a>) {
        self.pes.extend(other.pes);
        self.ages = other.ages.map(|ages| widened(self.ages, ages)).or(self.ages);
        self.cpu_percent =
            other.cpu_percent.map(|range| widened(self.cpu_percent, range)).or(self.cpu_percent);
    }
}

fn widened(range: Option<(u64, u64)>, (min, max): (u64, u64)) -> (u64, u64) {
    range.map_or((min, max), |(least, most)| (least.min(min), most.max(max)))
}
