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
/// The time limit of one job.
const LIMIT: Duration = Duration::from_secs(60);

/// Flags of the task.
#[derive(clap::Args)]
pub struct CrowdedFlags {
    /// Transports
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', default_values = ["tcp", "ucx", "ofi"])]
    transports: Vec<String>,
    /// Launches of each job
    #[arg(long, value_name = "N", default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,
    /// The directory of our own programs, instead of a fresh installation
    #[arg(long, value_name = "DIR")]
    ours: Option<PathBuf>,
}

/// Runs the task.
pub fn run(
    CrowdedFlags {
        transports,
        runs,
        ours,
    }: CrowdedFlags,
) -> Result<()> {
    let workspace = Workspace::open()?;
    let dir = workspace.target.join("bench-crowded");
    let bin = program::installed(ours, &workspace, &dir)?;
    let source = workspace.root.join("benches/crowded.c");
    let program = program::build(&bin, &source, &[], (&dir, "crowded"))?;
    let processors = std::thread::available_parallelism()?.get();
    println!(
        "| transport | PEs per processor | busy neighbors | {} |",
        OPERATIONS.join(" | ")
    );
    println!("|---|---|---|{}", "---|".repeat(OPERATIONS.len()));
    for transport in &transports {
        for (factor, n_neighbors) in [(1, 0), (2, 0), (1, 1), (1, processors), (2, 1)] {
            let mut times = OPERATIONS.map(|_| Vec::new());
            for _ in 0..runs {
                let _neighbors = Neighbors::start(&program, n_neighbors)?;
                let printed = capture(&bin, transport, factor * processors, &program)?;
                for (operation, times) in OPERATIONS.iter().zip(&mut times) {
                    times.push(program::value(&printed, operation)? / 1e3);
                }
            }
            let cells = times.map(|times| microseconds(&Spread::of(&times)));
            println!(
                "| {transport} | {factor} | {n_neighbors} | {} |",
                cells.join(" | ")
            );
        }
    }
    Ok(())
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

fn capture(bin: &Path, transport: &str, pes: usize, program: &Path) -> Result<String> {
    let mut job = process::limited(LIMIT, bin.join("oshrun"));
    job.args(["-n", &pes.max(2).to_string()])
        .arg(program)
        .envs([("SHMEM_ONNODE", "off"), ("SHMEM_TRANSPORT", transport)]);
    process::capture(&mut job)
}

fn microseconds(
    &Spread {
        low, median, high, ..
    }: &Spread,
) -> String {
    format!("{median:.1} ({low:.1}-{high:.1}) us")
}
