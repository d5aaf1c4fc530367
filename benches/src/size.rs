//! `cargo xtask bench-size`: how time and memory grow with the number of PEs on this machine.
//!
//! For each number of PEs it measures how long a job of init, one barrier and finalize takes from
//! the start of oshrun to its end (benches/start.c), and how much memory of each PE the library
//! uses (benches/memory.c), minus the memory of the same program without initialization. shmem-perf
//! can measure neither: a program does not see when its launcher starts and ends, and shmem-perf
//! uses much memory itself. With `--transport` it measures, instead of both, the memory and the
//! descriptors of PEs that reach each other only by that transport. The tables are for
//! docs/scale.md.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Result;
use shmem_perf::statistics::Spread;
use task_support::process;
use task_support::workspace::Workspace;

use crate::program::{self, value};

const PES: &[u32] = &[2, 4, 8, 16, 32, 64, 128, 256, 512];
/// The numbers of PEs with `--transport`, where all pairs of PEs are connected.
const PES_OFF_NODE: &[u32] = &[2, 4, 8, 16, 32, 64];
/// The time limit of one job.
const LIMIT: Duration = Duration::from_secs(300);
/// The size of the heap that the programs need, which is small so that 512 PEs fit any machine.
const HEAP_SIZE: &str = "2m";
/// The limit of docs/scale.md for the memory of a PE, in bytes, without [`AIM_FOR_EACH_PE`].
const AIM: f64 = 1024.0 * 1024.0;
/// The number of bytes that the limit adds for each PE of the job.
const AIM_FOR_EACH_PE: f64 = 200.0;

/// Flags of the task.
#[derive(clap::Args)]
pub struct SizeFlags {
    /// A number of PEs, 2 at least, since what a PE takes for others is measured
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..))]
    pes: Vec<u32>,
    /// Launches of each number
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,
    /// The transport by which each PE reaches every other one
    #[arg(long, value_name = "NAME")]
    transport: Option<String>,
    /// The directory of our own programs, instead of a fresh installation
    #[arg(long, value_name = "DIR")]
    ours: Option<PathBuf>,
}

/// Measures jobs of each number of PEs, and prints the tables.
pub fn run(
    SizeFlags {
        pes,
        runs,
        transport,
        ours,
    }: SizeFlags,
) -> Result<()> {
    let workspace = Workspace::open()?;
    let dir = workspace.target.join("bench-size");
    let bin = program::installed(ours, &workspace, &dir)?;
    let benches = workspace.root.join("benches");
    let build = |name| {
        let source = benches.join(name).with_extension("c");
        program::build(&bin, &source, &[], dir.join(name))
    };
    let memory = build("memory")?;
    // The kernel counts pages of a program and a library that are not on disk yet as Private_Dirty.
    process::run(&mut Command::new("sync"))?;
    let printed = capture(&bin, 1, &[&memory, Path::new("without")])?;
    let memory = MemoryProgram {
        program: memory,
        without: value(&printed, "without")?,
    };

    if let Some(transport) = transport {
        let pes = if pes.is_empty() { PES_OFF_NODE } else { &pes };
        return off_node(&bin, pes, &memory, &transport);
    }
    let pes = if pes.is_empty() { PES } else { &pes };
    on_node(&bin, pes, &memory, &build("start")?, runs)
}

/// The program that prints the memory of a PE.
struct MemoryProgram {
    program: PathBuf,
    /// The bytes of memory that it takes without the initialization of the library.
    without: f64,
}

/// Prints the times of `runs` jobs of the program `start`, and the memory of a PE.
fn on_node(bin: &Path, pes: &[u32], memory: &MemoryProgram, start: &Path, runs: u32) -> Result<()> {
    println!("| PEs | time | memory of a PE | at most | page tables | all heaps touched |");
    println!("|---|---|---|---|---|---|");
    for &pes in pes {
        let mut times = Vec::new();
        for _ in 0..runs {
            times.push(time(bin, pes, start)?);
        }
        let Spread { low, median, high } = Spread::of(&times);

        let printed = capture(bin, pes, &[&memory.program])?;
        let taken = value(&printed, "private")? + value(&printed, "slice")? - memory.without;
        let limit = AIM + AIM_FOR_EACH_PE * f64::from(pes);
        println!(
            "| {pes} | {median:.3} ({low:.3}-{high:.3}) s | {} | {} | {} | {} |",
            kib(taken),
            kib(limit),
            kib(value(&printed, "tables")?),
            kib(value(&printed, "tables_touched")?)
        );
    }
    Ok(())
}

/// Prints the memory of a PE after a barrier, and after it has used the connections to all others
/// by a transport.
fn off_node(bin: &Path, pes: &[u32], memory: &MemoryProgram, transport: &str) -> Result<()> {
    println!("| PEs | private memory of a PE after a barrier | all pairs used | descriptors |");
    println!("|---|---|---|---|");
    for &pes in pes {
        let mut job = job(bin, pes);
        job.envs([("SHMEM_ONNODE", "off"), ("SHMEM_TRANSPORT", transport)]);
        let printed = process::capture(job.arg(&memory.program).arg("pairs"))?;
        let first = value(&printed, "first")? - memory.without;
        let all = value(&printed, "private")? - memory.without;
        let files = value(&printed, "files")?;
        println!("| {pes} | {} | {} | {files:.0} |", kib(first), kib(all));
    }
    Ok(())
}

fn kib(bytes: f64) -> String {
    format!("{:.0} KiB", bytes / 1024.0)
}

fn job(bin: &Path, pes: u32) -> Command {
    let mut command = process::limited(LIMIT, bin.join("oshrun"));
    command
        .args(["-n", &pes.to_string()])
        .env("SHMEM_SYMMETRIC_SIZE", HEAP_SIZE);
    command
}

/// Returns the seconds from oshrun's start to its end.
fn time(bin: &Path, pes: u32, program: &Path) -> Result<f64> {
    let start = Instant::now();
    process::run(job(bin, pes).arg(program).stdout(Stdio::null()))?;
    Ok(start.elapsed().as_secs_f64())
}

fn capture(bin: &Path, pes: u32, words: &[&Path]) -> Result<String> {
    process::capture(job(bin, pes).args(words))
}
