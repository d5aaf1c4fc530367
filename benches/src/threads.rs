//! `cargo xtask bench-threads`: how much longer collectives take at SHMEM_THREAD_MULTIPLE, over a
//! network.
//!
//! `shmem-perf` measures the same collectives of one thread at SHMEM_THREAD_SINGLE and at
//! SHMEM_THREAD_MULTIPLE; the level that runs first alternates. `shmem-perf compare` compares them.
//! The task fails if a job fails, has the wrong number of PEs, thread level or transport, or lacks
//! a size.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Error, Result, bail, ensure};
use shmem_perf::record::{self, Record};
use task_support::process;
use task_support::workspace::Workspace;

use crate::program;
use crate::run_record::{FEWEST, RunRecord, compare};

/// The percentage by which a collective may take longer where several threads may call the library.
const AIM: &str = "10";
const SIZES: [u64; 4] = [8, 8 << 10, 64 << 10, 1 << 20];
/// The time limit of one job.
const LIMIT: Duration = Duration::from_secs(300);

/// The collectives that one job measures.
struct Part {
    operations: &'static [&'static str],
    /// True if a buffer holds a block of each member. The buffers of shmem-perf have the largest of
    /// its sizes, so the job then has an additional size, that of all blocks, at which no operation
    /// is measured.
    has_blocks: bool,
}

const PARTS: [Part; 2] = [
    Part {
        operations: &["max_reduce", "broadcast", "sync"],
        has_blocks: false,
    },
    Part {
        operations: &["collect", "fcollect"],
        has_blocks: true,
    },
];

/// A thread level.
struct Level {
    name: &'static str,
    options: &'static [&'static str],
}

const LEVELS: [Level; 2] = [
    Level {
        name: "single",
        options: &[],
    },
    Level {
        name: "multiple",
        options: &["--thread-multiple"],
    },
];

/// Flags of the task.
#[derive(clap::Args)]
pub struct ThreadsFlags {
    /// PEs of the jobs
    #[arg(long, value_name = "N,...", value_delimiter = ',', default_values_t = [2, 4, 8], value_parser = clap::value_parser!(u32).range(2..))]
    pes: Vec<u32>,
    /// Transports
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', default_values = ["tcp", "ucx", "ofi"])]
    transports: Vec<String>,
    /// Launches of each job at each level
    #[arg(long, value_name = "N", default_value_t = 15, value_parser = clap::value_parser!(u32).range(FEWEST..))]
    runs: u32,
    /// Seconds of a job
    #[arg(long, value_name = "SECONDS", default_value_t = 2.0)]
    time: f64,
    /// The directory of our own programs, instead of a fresh installation
    #[arg(long, value_name = "DIR")]
    ours: Option<PathBuf>,
}

/// Measures at both thread levels over each transport, and prints the comparisons.
pub fn run(flags: ThreadsFlags) -> Result<()> {
    let ThreadsFlags {
        pes,
        transports,
        runs,
        time,
        ours,
    } = flags;
    let workspace = Workspace::open()?;
    let dir = workspace.target.join("bench-threads");
    let bin = program::installed(ours, &workspace, &dir)?;
    std::fs::create_dir_all(&dir)?;
    let measurement = Measurement { dir, bin, time };

    for transport in &transports {
        for &pes in &pes {
            let mut records = LEVELS.map(|_| Vec::new());
            for run in 0..runs {
                for turn in 0..LEVELS.len() {
                    // The level that runs first alternates.
                    let number = (run as usize + turn) % LEVELS.len();
                    let path = measurement.run(transport, pes, &LEVELS[number], run)?;
                    records[number].push(path);
                }
            }
            println!("{transport}, {pes} PEs; before: single, after: multiple\n");
            let [single, multiple] = &records;
            compare(single, multiple, &["--threshold", AIM])?;
            println!();
        }
    }
    Ok(())
}

/// How all jobs are run.
struct Measurement {
    /// The directory of the records.
    dir: PathBuf,
    /// The directory of our programs.
    bin: PathBuf,
    /// The seconds of a job.
    time: f64,
}

impl Measurement {
    /// Runs the jobs of all parts at a thread level. Returns the path of the record of this run.
    fn run(&self, transport: &str, pes: u32, level: &Level, run: u32) -> Result<PathBuf> {
        let of_job = self.dir.join("record.json");
        let mut measured = RunRecord::new();
        for part in &PARTS {
            let requested = RequestedJob {
                transport,
                pes,
                part,
                level,
            };
            let mut job = requested.command(&self.bin, self.time);
            process::run(job.arg("--output").arg(&of_job).stdout(Stdio::null()))?;

            let found = record::load(&of_job).map_err(Error::msg)?;
            requested.check(&found)?;
            measured.add_job(found);
        }

        let name = format!("{transport} {pes} {} {run}.json", level.name);
        let path = self.dir.join(name);
        measured.write(&path)?;
        Ok(path)
    }
}

impl Part {
    /// Returns the sizes for a job of `pes` PEs, as the option of shmem-perf.
    fn sizes(&self, pes: u32) -> String {
        let mut sizes = SIZES.map(|size| size.to_string()).to_vec();
        if self.has_blocks {
            let of_all_blocks = SIZES[SIZES.len() - 1] * u64::from(pes);
            sizes.push(of_all_blocks.to_string());
        }
        sizes.join(",")
    }
}

/// Returns the sizes at which an operation is measured.
fn sizes_of(operation: &str) -> &'static [u64] {
    if operation == "sync" { &[0] } else { &SIZES }
}

/// A job of shmem-perf.
#[derive(Clone, Copy)]
struct RequestedJob<'a> {
    transport: &'a str,
    pes: u32,
    part: &'a Part,
    level: &'a Level,
}

impl RequestedJob<'_> {
    /// Returns the command that measures for about `time` seconds.
    fn command(&self, bin: &Path, time: f64) -> Command {
        let RequestedJob {
            transport,
            pes,
            part,
            level,
        } = *self;
        let mut job = process::limited(LIMIT, bin.join("oshrun"));
        job.args(["-n", &pes.to_string()])
            .arg(bin.join("shmem-perf"))
            .args(["--bind", "--measures", "collective"])
            .args(["--operations", &part.operations.join(",")])
            .args(["--sizes", &part.sizes(pes)])
            .args(["--time", &time.to_string()])
            .args(level.options)
            .envs([("SHMEM_ONNODE", "off"), ("SHMEM_TRANSPORT", transport)]);
        job
    }

    /// Checks that a record is complete and belongs to this job.
    fn check(&self, found: &Record) -> Result<()> {
        let RequestedJob {
            transport,
            pes,
            part,
            level,
        } = *self;
        let n = found.job.pes.len();
        ensure!(n == pes as usize, "a job of {pes} PEs had {n}");

        let provided = found.library.thread_level.as_deref().unwrap_or("unknown");
        ensure!(
            provided == level.name,
            "the library provides the thread level {provided} instead of {}",
            level.name
        );

        let path = found.library.path();
        ensure!(
            path.starts_with(transport),
            "the job went over {path} instead of {transport}"
        );
        ensure!(found.complete, "the job did not come to its end");

        for &operation in part.operations {
            let mut measured = Vec::new();
            for series in &found.series {
                if series.operation == operation {
                    measured.extend(series.points.iter().map(|point| point.nbytes));
                }
            }
            for size in sizes_of(operation) {
                if !measured.contains(size) {
                    bail!("{operation} of {size} bytes was not measured");
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shmem_perf::record::{Measure, PeInfo, Point, Series, Shape};

    #[test]
    fn a_record_of_another_job_is_refused() {
        let [part, _] = &PARTS;
        let [single, multiple] = &LEVELS;
        let mut found = Record {
            complete: true,
            ..Record::default()
        };
        found.library.transport = Some("tcp".into());
        found.library.thread_level = Some("single".into());
        found.job.pes = vec![
            PeInfo {
                host: 0,
                node: None,
                cpus: "0".into()
            };
            2
        ];
        for &operation in part.operations {
            let points = sizes_of(operation).iter().map(|&nbytes| Point {
                nbytes,
                ..Point::once(1.0)
            });
            found.series.push(Series {
                measure: Measure::Collective,
                operation: operation.to_owned(),
                is_floor: false,
                shape: Shape::default(),
                points: points.collect(),
            });
        }

        let requested = RequestedJob {
            transport: "tcp",
            pes: 2,
            part,
            level: single,
        };
        requested.check(&found).expect("it is what was requested");

        let refusal = |requested: RequestedJob<'_>, found: &Record| {
            let error = requested.check(found).expect_err("it is refused");
            error.to_string()
        };
        let of_four = RequestedJob {
            pes: 4,
            ..requested
        };
        assert_eq!(refusal(of_four, &found), "a job of 4 PEs had 2");
        let of_threads = RequestedJob {
            level: multiple,
            ..requested
        };
        assert!(refusal(of_threads, &found).contains("instead of multiple"));
        let over_ucx = RequestedJob {
            transport: "ucx",
            ..requested
        };
        assert!(refusal(over_ucx, &found).contains("instead of ucx"));

        let early = Record {
            complete: false,
            ..found.clone()
        };
        assert!(refusal(requested, &early).contains("to its end"));
        found.series[1].points.pop();
        assert!(refusal(requested, &found).contains("broadcast of 1048576 bytes"));
    }

    #[test]
    fn buffers_have_room_for_a_block_of_each_member() {
        assert_eq!(PARTS[1].sizes(4), "8,8192,65536,1048576,4194304");
        assert_eq!(PARTS[0].sizes(4), "8,8192,65536,1048576");
    }
}
