//! Toolchains that rustup can bring within a bounded wait, and runs of tests that must not be empty.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::process;

/// Makes `cargo miri` of the nightly toolchain available; the error says why it is not.
pub fn miri(patient: bool) -> Result<()> {
    let here = || {
        process::succeeds(Command::new("rustup").args([
            "run",
            "nightly",
            "cargo",
            "miri",
            "--version",
        ]))
    };
    rustup()?;
    if here() {
        return Ok(());
    }
    let nightly = process::succeeds(Command::new("rustup").args(["run", "nightly", "rustc", "-V"]));
    let arguments: &[&str] = if nightly {
        &["component", "add", "--toolchain", "nightly", "miri", "rust-src"]
    } else {
        &["toolchain", "install", "nightly", "--profile", "minimal", "-c", "miri", "-c", "rust-src"]
    };
    let limit = Duration::from_secs(if patient { 900 } else { 180 });
    println!("Adding Miri: rustup {}", arguments.join(" "));
    process::run(process::limited(limit, "rustup").args(arguments))
        .context("Miri cannot be had")?;
    if !here() {
        bail!("Miri was installed, yet `cargo +nightly miri` does not run");
    }
    Ok(())
}

/// Makes the Rust of `version` available; the error says why it is not.
pub fn toolchain(version: &str) -> Result<()> {
    rustup()?;
    if process::succeeds(Command::new("rustup").args(["run", version, "cargo", "-V"])) {
        return Ok(());
    }
    println!("Adding Rust {version} by rustup");
    let limit = Duration::from_secs(900);
    process::run(process::limited(limit, "rustup").args([
        "toolchain",
        "install",
        version,
        "--profile",
        "minimal",
    ]))
    .with_context(|| format!("Rust {version} cannot be had"))
}

/// Runs a test program or `cargo test`, shows what it prints, and refuses a run without a single test:
/// a filter that matches nothing must not look like success.
pub fn run_tests(command: &mut Command) -> Result<()> {
    println!("$ {}", process::shown(command));
    let mut child = command
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("could not start {}", process::shown(command)))?;
    let mut passed = 0;
    if let Some(stdout) = child.stdout.take() {
        for line in BufReader::new(stdout).lines() {
            let line = line?;
            println!("{line}");
            passed += passed_tests(&line);
        }
    }
    let status = child.wait()?;
    if !status.success() {
        bail!("{} failed ({status})", process::shown(command));
    }
    if passed == 0 {
        bail!("{} ran no test", process::shown(command));
    }
    Ok(())
}

fn rustup() -> Result<()> {
    match process::on_path("rustup") {
        Some(_) => Ok(()),
        None => bail!("rustup is not here"),
    }
}

/// The number in a line such as `test result: ok. 3 passed; 0 failed; ...`.
fn passed_tests(line: &str) -> u64 {
    line.strip_prefix("test result: ok. ")
        .and_then(|rest| rest.split_once(" passed"))
        .and_then(|(number, _)| number.parse().ok())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_without_a_test_is_refused() {
        let says = |text: &str| run_tests(Command::new("echo").arg(text));
        assert!(says("test result: ok. 2 passed; 0 failed; 0 ignored").is_ok());
        assert!(says("test result: ok. 0 passed; 0 failed; 0 ignored").is_err());
        assert!(run_tests(&mut Command::new("false")).is_err());
    }
}
