//! The rows of the table and the curves of the charts: each collective on each machine with teams
//! of several sizes.

use anyhow::Result;
use shmem_perf::report::{TeamCurve, TeamPoint};

use crate::machine::{DRAGONFLY, FLAT, Machine, TWO_LEVEL};
use crate::operation::{ModeledCollective, all};
use crate::run::run;

/// The largest team for which plans with a step for each member are run.
const MAX_LINEAR: u32 = 4096;
/// The sizes of teams in the table; the charts have all sizes.
const SIZES: [u32; 2] = [1024, 1 << 20];

/// One line of the table.
pub struct ScaleRow {
    operation: ModeledCollective,
    n: u32,
    /// The maximum numbers of messages and bytes of a member; `None` if the plans were not run.
    counted: Option<Counted>,
    /// For each machine, the time; `None` if it is not known.
    times: Vec<Option<ModelTime>>,
}

struct Counted {
    messages: u64,
    bytes: u64,
}

/// A time in microseconds.
struct ModelTime {
    time: f64,
    lower_bound: f64,
}

const MACHINES: [Machine; 3] = [FLAT, TWO_LEVEL, DRAGONFLY];

/// Returns the rows of the table, for teams of up to `max_pes`.
pub fn rows(max_pes: u32) -> Result<Vec<ScaleRow>> {
    let mut rows = Vec::new();
    for operation in all() {
        for n in SIZES {
            if n > max_pes {
                continue;
            }

            let mut row = ScaleRow {
                operation,
                n,
                counted: None,
                times: Vec::new(),
            };
            for machine in MACHINES {
                let time = if !operation.is_linear || n <= MAX_LINEAR {
                    let outcome = run(&operation, &machine, n)?;
                    row.counted = Some(Counted {
                        messages: outcome.messages,
                        bytes: outcome.bytes,
                    });
                    Some(outcome.time)
                } else if machine.pes_per_node == 1 {
                    operation.closed_form(&machine, n)
                } else {
                    None
                };
                row.times.push(time.map(|time| ModelTime {
                    time,
                    lower_bound: operation.collective.lower_bound(&machine, n),
                }));
            }
            rows.push(row);
        }
    }
    Ok(rows)
}

/// Returns the table of the rows that have a time on some machine.
pub fn markdown(rows: &[ScaleRow]) -> String {
    let mut text = String::from("| collective | algorithm | PEs | messages | KiB sent |");
    for machine in MACHINES {
        text += &format!(" {}, us |", machine.name);
    }
    text += "\n|---|---|---:|---:|---:|";
    text += &"---:|".repeat(MACHINES.len());
    text += "\n";

    for row in rows {
        if row.times.iter().all(Option::is_none) {
            continue;
        }

        let name = row.operation.collective.name();
        let n = row.n;
        text += &format!("| {name} | {} | {n} |", row.operation.algorithm);
        match &row.counted {
            Some(Counted { messages, bytes }) => {
                let kib = *bytes as f64 / 1024.0;
                text += &format!(" {messages} | {kib:.1} |");
            }
            // A linear plan has a message for each other member.
            None => text += &format!(" {} | |", n - 1),
        }
        for time in &row.times {
            match time {
                Some(ModelTime { time, lower_bound }) => {
                    text += &format!(" {time:.1} ({:.1}) |", time / lower_bound);
                }
                None => text += " |",
            }
        }
        text += "\n";
    }
    text
}

/// A chart of a collective.
pub struct Chart {
    pub file: String,
    pub title: String,
    /// A curve for each algorithm.
    pub curves: Vec<TeamCurve>,
    pub bound: TeamCurve,
}

/// Returns a chart for each collective, with the times of its algorithms on [`DRAGONFLY`].
pub fn charts(max_pes: u32) -> Result<Vec<Chart>> {
    const NS_PER_US: f64 = 1000.0;
    let mut charts: Vec<Chart> = Vec::new();
    for operation in all() {
        let mut times = Vec::new();
        let mut bounds = Vec::new();
        for log in 1..=20 {
            let n: u32 = 1 << log;
            if n > max_pes || (operation.is_linear && n > MAX_LINEAR) {
                break;
            }
            let n_members = u64::from(n);
            let time = run(&operation, &DRAGONFLY, n)?.time;
            times.push(TeamPoint {
                n_members,
                ns: time * NS_PER_US,
            });
            let bound = operation.collective.lower_bound(&DRAGONFLY, n);
            bounds.push(TeamPoint {
                n_members,
                ns: bound * NS_PER_US,
            });
        }

        let curve = TeamCurve {
            name: operation.algorithm.to_owned(),
            points: times,
        };
        let title = operation.collective.name();
        match charts.iter_mut().find(|chart| chart.title == title) {
            Some(chart) => chart.curves.push(curve),
            None => charts.push(Chart {
                file: format!("{}.svg", title.replace(", ", "-").replace(' ', "")),
                title,
                curves: vec![curve],
                bound: TeamCurve {
                    name: "lower bound".to_owned(),
                    points: bounds,
                },
            }),
        }
    }
    Ok(charts)
}
