//! The tasks of the program in the directory `benches`. It is built when one of them is called, so
//! that the other tasks do not wait for what it depends on.

use std::ffi::OsString;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use anyhow::{Context, Result};
use task_support::task::ABSENT;
use task_support::{process, workspace};

use crate::runner::{StepOutcome, TestSession};

/// Replaces this process by a task of the program.
///
/// # Errors
/// If cargo cannot be started.
pub fn become_task(task: &str, arguments: &[OsString]) -> Result<()> {
    Err(command(task).args(arguments).exec()).context("could not start cargo")
}

/// Runs a task as a step. The step is skipped if the task needs what this machine lacks.
pub fn step(session: &TestSession, task: &str, arguments: &[&str]) -> Result<StepOutcome> {
    outcome(
        command(task)
            .args(arguments)
            .current_dir(&session.workspace.root),
    )
}

/// Returns the command that builds the program and runs one of its tasks.
fn command(task: &str) -> Command {
    let mut cargo = workspace::cargo();
    cargo.args(["run", "--quiet", "--package", "benches", "--", task]);
    cargo
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
