//! The rows of the table and the curves of the charts: each collective on each machine with teams
//! of several sizes.

use crate::machine::{DRAGONFLY, FLAT, Machine, TWO_LEVEL};
use crate::operation::{ModeledCollective, all};
use crate::run::run;
use anyhow::Result;
use shmem_perf::report::Curve;
use std::fmt::Write as _;

/// The largest team for which plans with a step for each member are run.
const MAX_LINEAR: u32 = 4096;
/// The sizes of teams in the table. `MAX_LINEAR` is shown only for plans with a step for each
/// member.
const SIZES: [u32; 5] = [64, 1024, 4096, 65_536, 1 << 20];

/// One line of the table.
pub struct ScaleRow {
    operation: ModeledCollective,
    n: u32,
    /// The maximum numbers of messages, bytes and flags of a member; `None` if the plans were not
    /// run.
    counted: Option<(u64, u64, usize)>,
    /// For each machine, the time and its lower bound in microseconds; `None` if it is not known.
    times: Vec<Option<(f64, f64)>>,
}

const MACHINES: [Machine; 3] = [FLAT, TWO_LEVEL, DRAGONFLY];

/// Returns the rows of the table, for teams of up to `max_pes`.
pub fn rows(max_pes: u32) -> Result<Vec<ScaleRow>> {
    let mut rows = Vec::new();
    for operation in all() {
        let is_shown = |&n: &u32| n <= max_pes && (n != MAX_LINEAR || operation.is_linear);
        for n in SIZES.into_iter().filter(is_shown) {
            let mut row = ScaleRow {
                operation,
                n,
                counted: None,
                times: Vec::new(),
            };
            for machine in MACHINES {
                let bound = operation.collective.lower_bound(&machine, n);
                let time = match operation.is_linear && n > MAX_LINEAR {
                    true if machine.pes_per_node == 1 => operation.closed_form(&machine, n),
                    true => None,
                    false => {
                        let outcome = run(&operation, &machine, n)?;
                        row.counted = Some((outcome.messages, outcome.bytes, outcome.flags));
                        Some(outcome.time)
                    }
                };
                row.times.push(time.map(|time| (time, bound)));
            }
            rows.push(row);
        }
    }
    Ok(rows)
}

pub fn markdown(rows: &[ScaleRow]) -> String {
    let mut text = String::from("| collective | algorithm | PEs | messages | KiB sent |");
    MACHINES
        .iter()
        .for_each(|machine| _ = write!(text, " {}, us |", machine.name));
    text.push_str("\n|---|---|---:|---:|---:|");
    MACHINES.iter().for_each(|_| text.push_str("---:|"));
    text.push('\n');
    for row in rows
        .iter()
        .filter(|row| row.times.iter().any(Option::is_some))
    {
        let ModeledCollective {
            collective,
            algorithm,
            ..
        } = row.operation;
        let _ = write!(text, "| {} | {algorithm} | {} |", collective.name(), row.n);
        let _ = match row.counted {
            Some((messages, bytes, _)) => {
                write!(text, " {messages} | {:.1} |", bytes as f64 / 1024.0)
            }
            None => write!(text, " {} | |", row.n - 1),
        };
        for time in &row.times {
            let _ = match time {
                Some((time, bound)) => write!(text, " {time:.1} ({:.1}) |", time / bound),
                None => write!(text, " |"),
            };
        }
        text.push('\n');
    }
    text
}

/// A file name, a title, a curve for each algorithm, and the lower bound.
pub type Chart = (String, String, Vec<Curve>, Curve);

/// Returns a chart for each collective, with the times of its algorithms on [`DRAGONFLY`].
pub fn charts(max_pes: u32) -> Result<Vec<Chart>> {
    const NS: f64 = 1000.0;
    let mut charts: Vec<Chart> = Vec::new();
    for operation in all() {
        let limit = if operation.is_linear {
            MAX_LINEAR
        } else {
            u32::MAX
        };
        let sizes = || {
            (1..=20)
                .map(|log| 1 << log)
                .filter(|&n| n <= max_pes.min(limit))
        };
        let time = |n: u32| Ok((u64::from(n), run(&operation, &DRAGONFLY, n)?.time * NS));
        let curve = (
            operation.algorithm.to_owned(),
            sizes().map(time).collect::<Result<_>>()?,
        );
        let title = operation.collective.name();
        match charts.iter_mut().find(|(_, other, ..)| *other == title) {
            Some((_, _, curves, _)) => curves.push(curve),
            None => {
                let bound = |n| operation.collective.lower_bound(&DRAGONFLY, n) * NS;
                let bound = sizes().map(|n| (u64::from(n), bound(n))).collect();
                let name = title.replace(", ", "-").replace(' ', "");
                charts.push((name, title, vec![curve], ("lower bound".to_owned(), bound)));
            }
        }
    }
    Ok(charts)
}
