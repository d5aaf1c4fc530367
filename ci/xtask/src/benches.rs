//! The tasks that are programs of their own. Each is built when it is called, so that a
//! demonstration does not wait for what benchmarks and releases depend on.

use std::ffi::OsString;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use anyhow::{Context, Result};
use task_support::task::ABSENT;
use task_support::{process, workspace};

use crate::runner::{StepOutcome, TestSession};

/// A task of a program.
pub struct Program {
    /// The package of the program.
    package: &'static str,
    /// The name of the task, which is also the first argument of the program.
    task: &'static str,
}

pub const BENCH_CROWDED: Program = program("benches", "bench-crowded");
pub const BENCH_PEER: Program = program("benches", "bench-peer");
pub const BENCH_RACES: Program = program("benches", "bench-races");
pub const BENCH_SIZE: Program = program("benches", "bench-size");
pub const BENCH_THREADS: Program = program("benches", "bench-threads");
pub const BOOK: Program = program("documents", "book");
pub const CODEGEN: Program = program("documents", "codegen");
pub const COUNTS: Program = program("benches", "counts");
pub const DIST: Program = program("dist", "dist");
pub const MUTANTS: Program = program("mutants", "mutants");
pub const TIDY: Program = program("tidy", "tidy");
pub const VERBS: Program = program("verbs", "verbs");

const fn program(package: &'static str, task: &'static str) -> Program {
    Program { package, task }
}

impl Program {
    /// Returns the command that builds the program and runs the task.
    fn command(&self) -> Command {
        let mut cargo = workspace::cargo();
        cargo.args(["run", "--quiet", "--package", self.package, "--", self.task]);
        cargo
    }
}

/// Replaces this process by the program of a task.
///
/// # Errors
/// If cargo cannot be started.
pub fn become_task(program: &Program, arguments: &[OsString]) -> Result<()> {
    Err(program.command().args(arguments).exec()).context("could not start cargo")
}

/// Runs a task as a step. The step is skipped if the task needs what this machine lacks.
pub fn step(session: &TestSession, program: &Program, arguments: &[&str]) -> Result<StepOutcome> {
    outcome(
        program
            .command()
            .args(arguments)
            .current_dir(&session.workspace.root),
    )
}

fn outcome(command: &mut Command) -> Result<StepOutcome> {
    let mut child = command
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("could not start {}", process::shown(command)))?;

    // The last line is the reason, if the task lacks something.
    let mut last = String::new();
    let stderr = child.stderr.take().expect("it is piped");
    for line in BufReader::new(stderr).lines() {
        last = line?;
        eprintln!("{last}");
    }

    let status = child.wait()?;
    if status.code() == Some(ABSENT.into()) {
        let why = last.strip_prefix("xtask: ").unwrap_or(&last);
        return Ok(StepOutcome::Skipped(why.to_owned()));
    }
    process::decide(command, status).map(|()| StepOutcome::Passed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_that_lacks_something_is_skipped_with_the_reason() {
        let ends = |script: &str| outcome(Command::new("sh").args(["-c", script]));
        let absent = ends("echo first >&2; echo 'xtask: no QEMU' >&2; exit 77").unwrap();
        assert!(matches!(absent, StepOutcome::Skipped(why) if why == "no QEMU"));
        assert!(matches!(ends("exit 0"), Ok(StepOutcome::Passed)));
        assert!(ends("exit 1").is_err());
    }
}
