//! `cargo xtask bench-threads`: what collectives cost at SHMEM_THREAD_MULTIPLE, over a network.
//!
//! `shmem-perf` measures the same collectives of one thread at SHMEM_THREAD_SINGLE and at
//! SHMEM_THREAD_MULTIPLE; which of the two runs first alternates. A job that fails, has another
//! number of PEs, thread level or transport than is measured, or lacks a size fails the task.
//! Where the ranges of the middle half overlap no difference was measured.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Error, Result, ensure};
use shmem_perf::record::{self, Measure, Record};
use shmem_perf::statistics::Spread;
use task_support::process;
use task_support::workspace::{Install, Workspace};

use crate::ours;

/// The maximum factor of a collective's time where several threads may call the library.
const AIM: f64 = 1.1;
const SIZES: [u64; 4] = [8, 8 << 10, 64 << 10, 1 << 20];
/// The time limit of one job.
const LIMIT: Duration = Duration::from_secs(300);

/// Collectives that one job measures.
struct Part {
    operations: &'static [&'static str],
    /// Each member has a block in the buffers, which are as large as the largest size: the sizes
    /// then include one that makes room and fits no operation.
    has_blocks: bool,
}

const PARTS: [Part; 2] = [
    Part { operations: &["max_reduce", "broadcast", "sync"], has_blocks: false },
    Part { operations: &["collect", "fcollect"], has_blocks: true },
];

/// A thread level.
struct Level {
    name: &'static str,
    words: &'static [&'static str],
}

const LEVELS: [Level; 2] = [
    Level { name: "single", words: &[] },
    Level { name: "multiple", words: &["--thread-multiple"] },
];

/// A collective at one size, and its times at each level in nanoseconds, one per run.
struct Row {
    operation: &'static str,
    /// `None` if it has no size.
    nbytes: Option<u64>,
    times: [Vec<f64>; LEVELS.len()],
}

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
    #[arg(long, value_name = "N", default_value_t = 15, value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,
    /// Seconds of a job
    #[arg(long, value_name = "SECONDS", default_value_t = 2.0)]
    time: f64,
    /// The directory of our own programs, instead of a fresh installation
    #[arg(long, value_name = "DIR")]
    ours: Option<PathBuf>,
}

/// Runs the task.
pub fn run(flags: ThreadsFlags, install: Install) -> Result<()> {
    let ThreadsFlags { pes, transports, runs, time, ours } = flags;
    let workspace = Workspace::open()?;
    let dir = workspace.target.join("bench-threads");
    let bin = ours::bin(ours, &workspace, &dir, install)?;
    std::fs::create_dir_all(&dir)?;
    let record = dir.join("record.json");
    println!("| transport | PEs | collective | bytes | single | multiple | ratio |");
    println!("|---|---|---|---|---|---|---|");
    for transport in &transports {
        for &pes in &pes {
            let mut rows = rows();
            for run in 0..runs {
                for turn in 0..LEVELS.len() {
                    let number = (run as usize + turn) % LEVELS.len();
                    for part in &PARTS {
                        let job = job(&bin, (transport, pes, time), part, &LEVELS[number]);
                        let found = measure(job, &record)?;
                        check(&found, (transport, pes), &LEVELS[number])?;
                        for row in rows.iter_mut().filter(|row| part.has(row.operation)) {
                            row.times[number].push(row.time(&found)?);
                        }
                    }
                }
            }
            for row in &rows {
                println!("| {transport} | {pes} {}", row.shown());
            }
        }
    }
    Ok(())
}

fn rows() -> Vec<Row> {
    let of = |operation, nbytes| Row { operation, nbytes, times: [Vec::new(), Vec::new()] };
    let operations = PARTS.iter().flat_map(|part| part.operations);
    operations
        .flat_map(|&operation| match operation {
            "sync" => vec![of(operation, None)],
            _ => SIZES.map(|nbytes| of(operation, Some(nbytes))).into(),
        })
        .collect()
}

impl Part {
    fn has(&self, operation: &str) -> bool {
        self.operations.contains(&operation)
    }

    fn sizes(&self, pes: u32) -> String {
        let room = self.has_blocks.then(|| SIZES[SIZES.len() - 1] * u64::from(pes));
        let sizes = SIZES.iter().copied().chain(room).map(|size| size.to_string());
        sizes.collect::<Vec<_>>().join(",")
    }
}

fn job(
    bin: &Path,
    (transport, pes, time): (&str, u32, f64),
    part: &Part,
    level: &Level,
) -> Command {
    let mut job = process::limited(LIMIT, bin.join("oshrun"));
    job.args(["-n", &pes.to_string()])
        .arg(bin.join("shmem-perf"))
        .args(["--bind", "--measures", "collective", "--operations", &part.operations.join(",")])
        .args(["--sizes", &part.sizes(pes), "--time", &time.to_string()])
        .args(level.words)
        .envs([("SHMEM_ONNODE", "off"), ("SHMEM_TRANSPORT", transport)]);
    job
}

fn measure(mut job: Command, record: &Path) -> Result<Record> {
    process::run(job.arg("--output").arg(record).stdout(Stdio::null()))?;
    record::load(record).map_err(Error::msg)
}

/// Checks that a record is complete and belongs to the requested job.
fn check(found: &Record, (transport, pes): (&str, u32), level: &Level) -> Result<()> {
    let n = found.job.pes.len();
    ensure!(n == pes as usize, "a job of {pes} PEs had {n}");
    let provided = found.library.thread_level.as_deref().unwrap_or("unknown");
    ensure!(
        provided == level.name,
        "the library provides the thread level {provided} instead of {}",
        level.name
    );
    let path = found.library.path();
    ensure!(path.starts_with(transport), "the job went over {path} instead of {transport}");
    ensure!(found.complete, "the job did not come to its end");
    Ok(())
}

impl Row {
    fn time(&self, found: &Record) -> Result<f64> {
        let series = found
            .series
            .iter()
            .find(|one| one.measure == Measure::Collective && one.operation == self.operation);
        let mut points = series.iter().flat_map(|series| &series.points);
        let point = points.find(|point| self.nbytes.is_none_or(|nbytes| point.nbytes == nbytes));
        let point = point.with_context(|| {
            format!("{} of {:?} bytes was not measured", self.operation, self.nbytes)
        })?;
        Ok(point.summary.p50)
    }

    /// Returns the columns from the third on.
    fn shown(&self) -> String {
        let [single, multiple] = [0, 1].map(|level| Spread::of(&self.times[level]));
        let nbytes = self.nbytes.map(|nbytes| nbytes.to_string()).unwrap_or_default();
        format!(
            "| {} | {nbytes} | {} | {} | {} |",
            self.operation,
            microseconds(&single),
            microseconds(&multiple),
            compared(&single, &multiple)
        )
    }
}

fn microseconds(spread: &Spread) -> String {
    let [low, median, high] = [spread.low, spread.median, spread.high].map(|ns| ns / 1e3);
    format!("{median:.1} ({low:.1}-{high:.1}) us")
}

/// Returns the ratio, and what it means.
fn compared(single: &Spread, multiple: &Spread) -> String {
    let ratio = multiple.median / single.median;
    match ratio {
        _ if single.overlaps(multiple) => format!("{ratio:.2} (equal)"),
        ..=AIM => format!("{ratio:.2}"),
        _ => format!("{ratio:.2} (above {AIM})"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peer::figures::tests::record;

    #[test]
    fn a_record_of_another_job_is_refused() {
        let mut found = record(&[("collective", "broadcast", 8, 1.0, false)]);
        found.library.transport = Some("tcp".into());
        found.library.thread_level = Some("single".into());
        let [single, multiple] = &LEVELS;
        check(&found, ("tcp", 2), single).expect("it is what was requested");
        let refused = |transport, pes, level| check(&found, (transport, pes), level).unwrap_err();
        assert_eq!(refused("tcp", 4, single).to_string(), "a job of 4 PEs had 2");
        assert!(refused("tcp", 2, multiple).to_string().contains("instead of multiple"));
        assert!(refused("ucx", 2, single).to_string().contains("instead of ucx"));
        found.complete = false;
        check(&found, ("tcp", 2), single).expect_err("it ended early");
    }

    #[test]
    fn a_row_has_the_time_of_its_size() {
        let found = record(&[
            ("collective", "broadcast", 8, 1.0, false),
            ("collective", "collect", 8, 2.0, false),
            ("collective", "sync", 0, 3.0, false),
        ]);
        let time = |operation, nbytes| {
            Row { operation, nbytes, times: [Vec::new(), Vec::new()] }.time(&found)
        };
        assert_eq!(time("collect", Some(8)).unwrap(), 2.0);
        assert_eq!(time("sync", None).unwrap(), 3.0);
        assert!(time("collect", Some(16)).is_err() && time("fcollect", Some(8)).is_err());
        assert_eq!(rows().len(), 17);
        assert_eq!(PARTS[1].sizes(4), "8,8192,65536,1048576,4194304");
    }

    #[test]
    fn ranges_that_overlap_are_equal() {
        let of = |low, median, high| Spread { low, median, high };
        assert_eq!(compared(&of(9.0, 10.0, 12.0), &of(11.0, 13.0, 14.0)), "1.30 (equal)");
        assert_eq!(compared(&of(9.0, 10.0, 10.2), &of(10.3, 10.5, 11.0)), "1.05");
        assert_eq!(compared(&of(9.0, 10.0, 10.2), &of(11.0, 13.0, 14.0)), "1.30 (above 1.1)");
    }
}
