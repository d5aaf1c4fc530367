//! `cargo xtask bench-peer`: compares our library with others.
//!
//! shmem-perf, and the programs of benches/ that measure what it cannot, are built with the `oshcc`
//! of each library. Each library's `oshrun` runs them in turn, so that other load on the machine
//! affects all libraries alike. `shmem-perf compare` then compares ours with each other one, and
//! the last records of shmem-perf become a page if the suite has such jobs.
//!
//! `--suite` selects the programs. The other library is the system's Open MPI, and ours is built
//! and installed under target/, unless the arguments name others.

mod contender;
mod suites;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Error, Result};
use shmem_perf::{compile, report};
use task_support::workspace::Workspace;
use task_support::{needs, process};

use crate::program;
use crate::run_record::{FEWEST, compare};
use contender::{Contender, Sources};

/// The minimum number of runs for figures that are published, and the default.
const RUNS: u32 = 15;
/// The load average up to which the machine counts as idle. Where it is higher, the figures are
/// measured all the same, after a warning.
const QUIET: f64 = 0.5;

/// Flags of the task.
#[derive(clap::Args)]
pub struct PeerFlags {
    /// Suite to compare
    #[arg(long, value_name = "NAME", default_value = "on-node", value_parser = suites::ALL.map(|suite| suite.name))]
    suite: String,
    /// Runs of each
    #[arg(long, value_name = "N", default_value_t = RUNS, value_parser = clap::value_parser!(u32).range(FEWEST..))]
    runs: u32,
    /// The directory of the programs of another library, instead of the system's Open MPI
    #[arg(long = "peer", value_name = "DIR")]
    peers: Vec<PathBuf>,
    /// The directory of our own programs, instead of a fresh installation
    #[arg(long, value_name = "DIR")]
    ours: Option<PathBuf>,
}

/// Measures our library and its peers in turn, and prints the comparisons.
pub fn run(
    PeerFlags {
        suite,
        runs,
        mut peers,
        ours,
    }: PeerFlags,
) -> Result<()> {
    let suite = suites::ALL
        .into_iter()
        .find(|one| one.name == suite)
        .context("a suite of this name")?;
    let workspace = Workspace::open()?;
    let dir = workspace.target.join("bench-peer");
    if peers.is_empty() {
        peers.push(open_mpi()?);
    }
    let ours = program::installed(ours, &workspace, &dir)?;
    let sources = Sources {
        benches: workspace.root.join("benches"),
        parts: match suite.measured {
            [] => PathBuf::new(),
            _ => compile::parts_dir(&ours).map_err(Error::msg)?,
        },
    };
    let mut all = vec![Contender::build("ours", suite, &ours, &sources, &dir)?];
    for (bin, number) in peers.iter().zip(1..) {
        let name = if peers.len() > 1 {
            format!("theirs-{number}")
        } else {
            "theirs".into()
        };
        all.push(Contender::build(&name, suite, bin, &sources, &dir)?);
    }

    if let Some(load) = load()
        && load > QUIET
    {
        println!("The machine is busy (load {load:.1}): equal will mean little.");
    }

    let mut done = 0;
    let mut ended = Ok(());
    while done < runs && ended.is_ok() {
        eprint!("\rrun {} of {runs} ", done + 1);
        // Each round begins with another library, so that none always follows the same one.
        ended = run_in_turn(&mut all, done as usize + 1);
        if ended.is_ok() {
            done += 1;
        }
    }
    eprintln!();

    // After a failure, the runs before it are compared if they are enough.
    if i64::from(done) >= FEWEST {
        compare_all(&all, &peers, done)?;
        let page = dir.join(suite.name).with_extension("html");
        write_page(&all, &page)?;
        if done < RUNS {
            println!("\nFewer than {RUNS} runs: not to be quoted.");
        }
    }
    ended
}

/// Prints the comparisons of ours, which is the first of `all`, with the libraries in `peers`.
fn compare_all(all: &[Contender], peers: &[PathBuf], n_runs: u32) -> Result<()> {
    let (ours, theirs) = all.split_first().context("ours takes part")?;
    for (bin, theirs) in peers.iter().zip(theirs) {
        println!(
            "Before: {}; after: ours; {n_runs} runs of each, in turn\n",
            bin.display()
        );
        compare(theirs.runs(), ours.runs(), &[])?;
    }
    Ok(())
}

/// Writes a page of the last records of shmem-perf, if the suite has such jobs.
fn write_page(all: &[Contender], page: &Path) -> Result<()> {
    let records = all.iter().flat_map(Contender::last_jobs);
    let mut words: Vec<String> = records.map(|record| record.display().to_string()).collect();
    if !words.is_empty() {
        words.extend(["-o".to_owned(), page.display().to_string()]);
        report::run(&words).map_err(Error::msg)?;
    }
    Ok(())
}

/// Runs each library once, beginning with the one at `first` modulo their number.
fn run_in_turn(all: &mut [Contender], first: usize) -> Result<()> {
    let n = all.len();
    for turn in 0..n {
        all[(first + turn) % n].run()?;
    }
    Ok(())
}

/// Returns the mean number of processes that were ready to run in the last minute.
fn load() -> Option<f64> {
    let text = fs::read_to_string("/proc/loadavg").ok()?;
    text.split(' ').next()?.parse().ok()
}

/// Returns the directory of the system's Open MPI programs. Installs Open MPI if it is missing.
fn open_mpi() -> Result<PathBuf> {
    needs::ensure(&[&needs::OPEN_MPI])?;
    let oshcc = process::on_path("oshcc").context("oshcc is not on PATH")?;
    let asked = process::capture(Command::new(&oshcc).arg("--showme:version"));
    let version = asked.with_context(|| {
        format!(
            "{} is not Open MPI's; name its directory with --peer",
            oshcc.display()
        )
    })?;
    println!("Theirs: {}", version.trim());

    let dir = oshcc.parent().context("oshcc is in no directory")?;
    Ok(dir.to_owned())
}
