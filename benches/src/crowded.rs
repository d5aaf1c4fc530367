//! `cargo xtask bench-crowded`: the times of small operations over each transport if PEs outnumber
//! the processors, and if other processes compute beside the PEs.
//!
//! The figures are means, which include operations that waited for a processor. They vary with the
//! decisions of the kernel's scheduler, so the table also has the range of the middle half of the
//! runs.

use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::Duration;

use anyhow::Result;
use shmem_perf::statistics::Spread;
use task_support::process;
use task_support::workspace::Workspace;

use crate::program;

const OPERATIONS: [&str; 4] = ["put", "get", "fetch_add", "round_trip"];
/// Launches of each job if nothing is compared, and if two installations are.
const RUNS: u32 = 7;
const RUNS_COMPARED: u32 = 15;
/// The time limit of one job.
const LIMIT: Duration = Duration::from_secs(60);

/// Flags of the task.
#[derive(clap::Args)]
pub struct CrowdedFlags {
    /// Transports
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', default_values = ["tcp", "ucx", "ofi"])]
    transports: Vec<String>,
    /// Launches of each job; by default 7, or 15 with --against
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    runs: Option<u32>,
    /// The directory of our own programs, instead of a fresh installation
    #[arg(long, value_name = "DIR")]
    ours: Option<PathBuf>,
    /// An installed prefix: run its programs and our own in turn, and show the ratios
    #[arg(long, value_name = "DIR")]
    against: Option<PathBuf>,
}

/// Measures each job with each library, and prints the table.
pub fn run(
    CrowdedFlags {
        transports,
        runs,
        ours,
        against,
    }: CrowdedFlags,
) -> Result<()> {
    let workspace = Workspace::open()?;
    let dir = workspace.target.join("bench-crowded");
    let source = workspace.root.join("benches/crowded.c");
    let usual_runs = if against.is_some() {
        RUNS_COMPARED
    } else {
        RUNS
    };
    let runs = runs.unwrap_or(usual_runs);

    let mut libraries = Vec::new();
    if let Some(prefix) = against {
        let program = dir.join("crowded-against");
        libraries.push(Library::new(prefix.join("bin"), &source, program)?);
    }
    let ours = program::installed(ours, &workspace, &dir)?;
    libraries.push(Library::new(ours, &source, dir.join("crowded"))?);

    let processors = std::thread::available_parallelism()?.get();
    println!(
        "| transport | PEs per processor | busy neighbors | {} |",
        OPERATIONS.join(" | ")
    );
    println!("|---|---|---|{}", "---|".repeat(OPERATIONS.len()));
    for transport in &transports {
        for (factor, n_neighbors) in [(1, 0), (2, 0), (1, 1), (1, processors), (2, 1)] {
            let job = CrowdedJob {
                transport,
                n_pes: factor * processors,
                n_neighbors,
            };
            let cells = job.measure(&libraries, runs)?.map(|spreads| show(&spreads));
            println!(
                "| {transport} | {factor} | {n_neighbors} | {} |",
                cells.join(" | ")
            );
        }
    }
    Ok(())
}

/// An installed library with the benchmark, which was compiled for it.
struct Library {
    bin: PathBuf,
    program: PathBuf,
}

impl Library {
    fn new(bin: PathBuf, source: &Path, program: PathBuf) -> Result<Library> {
        let program = program::build(&bin, source, &[], program)?;
        Ok(Library { bin, program })
    }
}

/// A job whose operations are timed.
struct CrowdedJob<'a> {
    transport: &'a str,
    n_pes: usize,
    n_neighbors: usize,
}

impl CrowdedJob<'_> {
    /// Runs the job `runs` times with each library, in turn. Returns for each operation the times
    /// with each library.
    fn measure(&self, libraries: &[Library], runs: u32) -> Result<[Vec<Spread>; OPERATIONS.len()]> {
        let mut times = OPERATIONS.map(|_| vec![Vec::new(); libraries.len()]);
        for _ in 0..runs {
            for (number, library) in libraries.iter().enumerate() {
                let printed = self.run(library)?;
                for (operation, times) in OPERATIONS.iter().zip(&mut times) {
                    times[number].push(program::value(&printed, operation)? / 1e3);
                }
            }
        }
        Ok(times.map(|libraries| libraries.iter().map(|times| Spread::of(times)).collect()))
    }

    /// Runs the job once. Returns what it prints.
    fn run(&self, library: &Library) -> Result<String> {
        let _neighbors = Neighbors::start(&library.program, self.n_neighbors)?;
        let mut job = process::limited(LIMIT, library.bin.join("oshrun"));
        job.args(["-n", &self.n_pes.max(2).to_string()])
            .arg(&library.program)
            .envs([("SHMEM_ONNODE", "off"), ("SHMEM_TRANSPORT", self.transport)]);
        process::capture(&mut job)
    }
}

/// Processes that compute until this is dropped.
struct Neighbors(Vec<Child>);

impl Neighbors {
    fn start(program: &Path, n: usize) -> Result<Neighbors> {
        let mut neighbors = Neighbors(Vec::new());
        for _ in 0..n {
            neighbors.0.push(Command::new(program).arg("busy").spawn()?);
        }
        Ok(neighbors)
    }
}

impl Drop for Neighbors {
    fn drop(&mut self) {
        for neighbor in &mut self.0 {
            // `kill` fails if the process has ended.
            let _ = neighbor.kill();
            let _ = neighbor.wait();
        }
    }
}

/// Returns the text of the times of an operation in microseconds, with one library or two. Of two,
/// the ratio of the medians comes first.
fn show(spreads: &[Spread]) -> String {
    let mut times = Vec::new();
    for Spread { low, median, high } in spreads {
        times.push(format!("{median:.1} ({low:.1}-{high:.1}) us"));
    }
    match spreads {
        [before, ours] => format!("{:.2}: {}", ours.median / before.median, times.join(" -> ")),
        _ => times.join(""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_is_shown_if_two_libraries_are_compared() {
        let [before, ours] = [[2.0, 4.0, 8.0], [4.0, 5.0, 6.0]].map(|times| Spread::of(&times));
        assert_eq!(show(&[before]), "4.0 (3.0-6.0) us");
        assert_eq!(
            show(&[before, ours]),
            "1.25: 4.0 (3.0-6.0) us -> 5.0 (4.5-5.5) us"
        );
    }
}
