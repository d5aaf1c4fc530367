//! `cargo xtask bench-peer`: our library and another OpenSHMEM, side by side.
//!
//! The sources under benches/ are built by both compilers' wrappers and run by both launchers in turn,
//! so that whatever else the machine does falls on both. The table quotes medians with the range of
//! the middle half; where two ranges overlap no difference was measured, and the table says equal.
//!
//! `--suite` says what is compared: PEs that share memory (the usual one), PEs that have nothing but TCP, by
//! our own transport or by UCX, whole jobs from start to end, or collectives with shared memory and over TCP. The other one is the
//! system's Open MPI and ours is built and installed under target/, unless told otherwise.

mod contender;
mod suite;
mod table;

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail};
use lexopt::{Arg, ValueExt};
use workbench::workspace::{Install, Workspace};
use workbench::{needs, process};

use crate::ours;
use contender::Contender;

const RUNS: usize = 15;
/// The load below which nothing else is at work.
const QUIET: f64 = 0.5;

/// As a task, with its arguments.
///
/// # Errors
/// What failed, or an argument that there is not.
pub fn run(args: &[String], install: Install) -> Result<()> {
    let mut runs = RUNS;
    let mut ours = None;
    let mut theirs = None;
    let mut suite = &suite::ON_NODE;
    let mut parser = lexopt::Parser::from_args(args);
    while let Some(arg) = parser.next()? {
        match arg {
            Arg::Long("runs") => runs = parser.value()?.parse()?,
            Arg::Long("ours") => ours = Some(PathBuf::from(parser.value()?)),
            Arg::Long("peer") => theirs = Some(PathBuf::from(parser.value()?)),
            Arg::Long("suite") => {
                let name = parser.value()?.string()?;
                suite = suite::named(&name).with_context(|| {
                    let names: Vec<&str> = suite::ALL.iter().map(|suite| suite.name).collect();
                    format!("there is no suite {name}: it is one of {}", names.join(", "))
                })?;
            }
            other => return Err(other.unexpected().into()),
        }
    }
    if runs == 0 {
        bail!("--runs 0 measures nothing");
    }
    let workspace = Workspace::open()?;
    let folder = workspace.target.join("bench-peer");
    let theirs = match theirs {
        Some(bin) => bin,
        None => open_mpi()?,
    };
    let ours = ours::bin(ours, &workspace, &folder, install)?;
    let benches = workspace.root.join("benches");
    let mut ours = Contender::build(suite, &ours, &benches, &folder.join("ours"))?;
    let mut theirs = Contender::build(suite, &theirs, &benches, &folder.join("theirs"))?;

    if let Some(load) = load().filter(|&load| load > QUIET) {
        println!(
            "The machine is busy (load {load:.1}): ranges will be wide and equal means little."
        );
    }
    for run in 1..=runs {
        eprint!("\rrun {run} of {runs} ");
        // Neither is always the one that finds the machine as the other left it.
        let (first, second) = match run % 2 {
            0 => (&mut theirs, &mut ours),
            _ => (&mut ours, &mut theirs),
        };
        first.measure()?;
        second.measure()?;
    }
    eprintln!();
    println!("{runs} runs each, in turn: median (middle half)\n");
    print!("{}", table::of(suite.rows, suite.bare, &ours.spreads(), &theirs.spreads()));
    if runs < RUNS {
        println!("\nFewer than {RUNS} runs: not to be quoted.");
    }
    Ok(())
}

/// How many processes wanted a processor in the last minute.
fn load() -> Option<f64> {
    let text = fs::read_to_string("/proc/loadavg").ok()?;
    text.split(' ').next()?.parse().ok()
}

/// The folder of the system's Open MPI programs, installed first where it is missing.
fn open_mpi() -> Result<PathBuf> {
    needs::ensure(&[&needs::OPEN_MPI])?;
    let oshcc = process::on_path("oshcc").context("oshcc is not on PATH")?;
    let version =
        process::capture(Command::new(&oshcc).arg("--showme:version")).with_context(|| {
            format!("{} is not Open MPI's; name its folder with --peer", oshcc.display())
        })?;
    println!("Theirs: {}", version.trim());
    let folder = oshcc.parent().context("oshcc lies nowhere")?;
    Ok(folder.to_owned())
}
