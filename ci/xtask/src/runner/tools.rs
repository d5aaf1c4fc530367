//! The parts that steps share: the outcome of a step, the installation of toolchains and the
//! download of crates within a time limit, and the count of the tests of a run, which must not be
//! 0.

use std::ops::AddAssign;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use task_support::process;
use task_support::task::Absent;

/// The outcome of a step that did not fail.
pub enum StepOutcome {
    Passed,
    /// The step did not run, or only a part of it, for this reason.
    Skipped(String),
}

impl StepOutcome {
    /// Returns the outcome of a step that consists of this part and another one: skipped if one of
    /// them was.
    pub fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Passed, outcome) | (outcome, Self::Passed) => outcome,
            (Self::Skipped(why), Self::Skipped(also)) => Self::Skipped(format!("{why}; {also}")),
        }
    }
}

/// The time limit of a download. After it, the source counts as out of reach.
const DOWNLOAD: Duration = Duration::from_secs(300);

/// Installs `cargo miri` of the nightly toolchain, unless it is installed.
///
/// # Errors
/// If it cannot be installed; the error has the reason.
pub fn install_miri() -> Result<()> {
    require_rustup()?;
    if has_miri() {
        return Ok(());
    }

    let version = ["run", "nightly", "rustc", "--version"];
    let has_nightly = process::succeeds(Command::new("rustup").args(version));
    let arguments = if has_nightly {
        "component add --toolchain nightly miri rust-src"
    } else {
        "toolchain install nightly --profile minimal -c miri -c rust-src"
    };
    println!("Adding Miri: rustup {arguments}");
    process::run(process::limited(DOWNLOAD, "rustup").args(arguments.split(' ')))
        .context("Miri cannot be had")?;

    if !has_miri() {
        bail!("Miri was installed, yet `cargo +nightly miri` does not run");
    }
    Ok(())
}

fn has_miri() -> bool {
    let version = ["run", "nightly", "cargo", "miri", "--version"];
    process::succeeds(Command::new("rustup").args(version))
}

/// Installs the Rust of `version`, unless it is installed.
///
/// # Errors
/// If it cannot be installed; the error has the reason.
pub fn install_rust(version: &str) -> Result<()> {
    require_rustup()?;
    if process::succeeds(Command::new("rustup").args(["run", version, "cargo", "-V"])) {
        return Ok(());
    }

    println!("Adding Rust {version} by rustup");
    let mut rustup = process::limited(DOWNLOAD, "rustup");
    rustup.args(["toolchain", "install", version, "--profile", "minimal"]);
    process::run(&mut rustup).with_context(|| format!("Rust {version} cannot be had"))
}

/// Installs the standard library for `target`, unless it is installed.
///
/// # Errors
/// If it cannot be installed; the error has the reason.
pub fn install_target(target: &str) -> Result<()> {
    require_rustup()?;
    process::run(process::limited(DOWNLOAD, "rustup").args(["target", "add", target]))
        .with_context(|| format!("the standard library for {target} cannot be had"))
}

/// Downloads the crates that the nightly toolchain needs to build the workspace in `dir`, by `cargo
/// fetch` with these arguments. The inner error has the reason why they cannot be downloaded.
///
/// # Errors
/// If rustup cannot be started, or the lock file does not match the manifests: these are not faults
/// of the network.
pub fn fetch_crates(dir: &Path, arguments: &[&str]) -> Result<Result<()>> {
    let mut fetch = process::limited(DOWNLOAD, "rustup");
    fetch
        .args(["run", "nightly", "cargo", "fetch", "--locked"])
        .args(arguments)
        .current_dir(dir);
    println!("$ {}", process::shown(&fetch));
    let output = fetch.output().context("rustup cannot be started")?;
    let complaint = String::from_utf8_lossy(&output.stderr);
    print!("{complaint}");

    // cargo has one exit status for all errors.
    if complaint.contains("because --locked was passed") {
        bail!("the lock file in {} is not up to date", dir.display());
    }
    Ok(process::decide(&fetch, output.status).context("its crates cannot be had"))
}

/// Runs a command as a step, which fails if the command does.
pub fn passed(command: &mut Command) -> Result<StepOutcome> {
    process::run(command).map(|()| StepOutcome::Passed)
}

/// Returns the outcome of a task as a step: skipped if the task needs what this machine lacks.
pub fn of_task(result: Result<()>) -> Result<StepOutcome> {
    match result {
        Ok(()) => Ok(StepOutcome::Passed),
        Err(error) if error.is::<Absent>() => Ok(StepOutcome::Skipped(format!("{error:#}"))),
        Err(error) => Err(error),
    }
}

/// The numbers of tests by outcome, of one run or of several.
#[derive(Debug, Default, Clone, Copy)]
pub struct TestTally {
    passed: u64,
    /// Tests that did not run because they are long, or because a tool that they need is missing.
    ignored: u64,
}

impl AddAssign for TestTally {
    fn add_assign(&mut self, more: TestTally) {
        self.passed += more.passed;
        self.ignored += more.ignored;
    }
}

impl TestTally {
    /// Returns the numbers in a line such as `test result: ok. 3 passed; 0 failed; 2 ignored; ...`.
    fn read(line: &str) -> Option<TestTally> {
        let results = line.strip_prefix("test result: ok. ")?;
        let mut passed = None;
        let mut ignored = None;
        for part in results.split("; ") {
            match part.split_once(' ') {
                Some((number, "passed")) => passed = number.parse().ok(),
                Some((number, "ignored")) => ignored = number.parse().ok(),
                _ => {}
            }
        }
        Some(TestTally {
            passed: passed?,
            ignored: ignored?,
        })
    }

    /// Returns the outcome of a step that consists of these tests. It is an error if there was no
    /// test: a filter that matches nothing must not look like success. If all were ignored, the
    /// step counts as skipped.
    pub fn outcome(self) -> Result<StepOutcome> {
        if self.passed > 0 {
            return Ok(StepOutcome::Passed);
        }
        if self.ignored > 0 {
            return Ok(StepOutcome::Skipped("all of its tests were ignored".into()));
        }
        bail!("no test ran")
    }
}

/// Runs a test program or `cargo test`, and prints its output. Returns the number of its tests.
pub fn tally(command: &mut Command) -> Result<TestTally> {
    let shown = process::shown(command);
    println!("started: {shown}");
    let output = command
        .output()
        .with_context(|| format!("could not start {shown}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    // One call prints all, since several programs may run at the same time.
    println!(
        "$ {shown}\n{text}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    process::decide(command, output.status)?;

    let mut tally = TestTally::default();
    for line in text.lines() {
        if let Some(more) = TestTally::read(line) {
            tally += more;
        }
    }
    Ok(tally)
}

fn require_rustup() -> Result<()> {
    match process::on_path("rustup") {
        Some(_) => Ok(()),
        None => bail!("rustup is not here"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_that_lacks_something_is_skipped_with_the_reason() {
        let absent = Err(Absent("no QEMU".to_owned()).into());
        assert!(matches!(of_task(absent), Ok(StepOutcome::Skipped(why)) if why == "no QEMU"));
        assert!(matches!(of_task(Ok(())), Ok(StepOutcome::Passed)));
        assert!(of_task(Err(anyhow::Error::msg("broken"))).is_err());
    }

    #[test]
    fn a_run_without_a_test_is_refused() {
        let says = |passed, ignored| {
            let text = format!(
                "test result: ok. {passed} passed; 0 failed; {ignored} ignored; 0 measured"
            );
            tally(Command::new("echo").arg(text)).and_then(TestTally::outcome)
        };
        assert!(matches!(says(2, 1), Ok(StepOutcome::Passed)));
        assert!(matches!(says(0, 1), Ok(StepOutcome::Skipped(_))));
        assert!(says(0, 0).is_err());
        assert!(tally(&mut Command::new("false")).is_err());
    }
}
