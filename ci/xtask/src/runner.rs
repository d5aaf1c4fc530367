//! Runs the steps of `cargo xtask check` and `cargo xtask test`.
//!
//! Each step prints its name and its time. After a failed step the others run, except those that
//! need its result. Some steps run at the same time. A table at the end has the outcome of all
//! steps, with the reasons why some were skipped.

mod suites;
mod tools;

use std::time::{Duration, Instant};

use anyhow::{Result, bail};

pub use suites::{Run, SHMEM_C, Suites, TestSession, Tier, XTASK, tests_the_prefix};
pub use tools::{
    StepOutcome, fetch_crates, install_miri, install_rust, install_target, of_task, passed, tally,
};

use suites::in_lanes;

/// Maximum number of steps that run at the same time, each with several programs.
const STEPS_AT_ONCE: usize = 3;

/// A step, a row of a table.
pub struct TestStep {
    pub name: &'static str,
    /// The step whose result this one needs. If that step fails, this one is skipped.
    pub after: Option<&'static str>,
    /// True if the step may run at the same time as its neighbors in the table for which this is
    /// true, too: for most of its time it waits, builds, or keeps only one CPU busy.
    is_beside: bool,
    run: fn(&TestSession) -> Result<StepOutcome>,
}

/// Returns a step that needs no other one.
pub const fn step(name: &'static str, run: fn(&TestSession) -> Result<StepOutcome>) -> TestStep {
    TestStep {
        name,
        after: None,
        is_beside: false,
        run,
    }
}

/// Returns a step that needs the prefix of the step `install`.
pub const fn installed(
    name: &'static str,
    run: fn(&TestSession) -> Result<StepOutcome>,
) -> TestStep {
    TestStep {
        name,
        after: Some("install"),
        is_beside: false,
        run,
    }
}

/// Returns the step as one that may run at the same time as its neighbors.
pub const fn beside(step: TestStep) -> TestStep {
    TestStep {
        is_beside: true,
        ..step
    }
}

/// Which steps of a table are run.
#[derive(clap::Args)]
pub struct StepFlags {
    /// This step alone
    #[arg(long, value_name = "STEP")]
    pub only: Vec<String>,
    /// Print the names of the steps
    #[arg(long)]
    pub list: bool,
}

impl StepFlags {
    /// Returns the steps of a table that the flags select.
    pub fn choose<'a>(&self, table: Vec<&'a TestStep>) -> Vec<&'a TestStep> {
        let mut chosen = table;
        if !self.only.is_empty() {
            chosen.retain(|step| self.only.iter().any(|name| name == step.name));
        }
        chosen
    }

    /// Returns the first name of a step that a table does not have.
    pub fn unknown(&self, table: &[&TestStep]) -> Option<&str> {
        let has = |name: &String| table.iter().any(|step| step.name == name);
        self.only.iter().find(|name| !has(name)).map(String::as_str)
    }
}

/// Runs steps, and prints a table of their outcomes.
///
/// # Errors
/// If a step fails; the error names the first one.
pub fn run(steps: &[&TestStep], session: &TestSession) -> Result<()> {
    let start = Instant::now();
    let reports = run_all(steps, session);
    print!("{}", summary(&reports, start.elapsed()));
    match reports.iter().find(|report| report.failed()) {
        None => Ok(()),
        Some(first) => bail!("the step {} failed first", first.name),
    }
}

/// The outcome of a step: one line of the table at the end.
struct StepReport {
    name: &'static str,
    took: Duration,
    result: Result<StepOutcome>,
}

impl StepReport {
    fn failed(&self) -> bool {
        self.result.is_err()
    }

    fn outcome(&self) -> String {
        match &self.result {
            Ok(StepOutcome::Passed) => "passed".into(),
            Ok(StepOutcome::Skipped(why)) => format!("skipped: {why}"),
            Err(error) => format!("FAILED: {error:#}"),
        }
    }
}

fn run_all(steps: &[&TestStep], session: &TestSession) -> Vec<StepReport> {
    let mut reports: Vec<StepReport> = Vec::new();
    for beside in steps.chunk_by(|one, next| one.is_beside && next.is_beside) {
        let ended = in_lanes(STEPS_AT_ONCE, beside.to_vec(), |step| {
            run_step(step, &reports, session)
        });
        reports.extend(ended);
    }
    reports
}

fn run_step(step: &TestStep, before: &[StepReport], session: &TestSession) -> StepReport {
    println!("\n==== {}", step.name);
    let start = Instant::now();

    let failed = before
        .iter()
        .find(|other| Some(other.name) == step.after && other.failed());
    let result = match failed {
        Some(failed) => Ok(StepOutcome::Skipped(format!("{} failed", failed.name))),
        None => (step.run)(session),
    };

    let report = StepReport {
        name: step.name,
        took: start.elapsed(),
        result,
    };
    println!(
        "==== {}: {} ({:.1} s)",
        report.name,
        report.outcome(),
        report.took.as_secs_f64()
    );
    report
}

fn summary(reports: &[StepReport], all: Duration) -> String {
    let mut text = String::from("\n");
    for report in reports {
        text += &format!(
            "{:16} {:7.1} s  {}\n",
            report.name,
            report.took.as_secs_f64(),
            report.outcome()
        );
    }
    text + &format!("{:16} {:7.1} s\n", "together", all.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    use task_support::workspace::Workspace;

    use super::*;

    fn session() -> TestSession {
        TestSession {
            workspace: Workspace {
                root: PathBuf::new(),
                target: PathBuf::new(),
                packages: Vec::new(),
            },
            prefix: PathBuf::new(),
            suites: Suites::default(),
            tier: Tier::First,
        }
    }

    #[test]
    fn a_failure_stops_only_what_stands_on_it() {
        let steps = [
            step("install", |_| bail!("no room")),
            installed("tests", |_| Ok(StepOutcome::Passed)),
            step("miri", |_| Ok(StepOutcome::Passed)),
        ];
        let reports = run_all(&steps.iter().collect::<Vec<_>>(), &session());
        let outcomes: Vec<String> = reports.iter().map(StepReport::outcome).collect();
        assert_eq!(
            outcomes,
            ["FAILED: no room", "skipped: install failed", "passed"]
        );
    }

    /// Each of the two waits for the other.
    #[test]
    fn some_steps_run_beside_each_other() {
        fn meet(_: &TestSession) -> Result<StepOutcome> {
            static N_HERE: AtomicUsize = AtomicUsize::new(0);
            N_HERE.fetch_add(1, Relaxed);
            let start = Instant::now();
            while N_HERE.load(Relaxed) < 2 {
                if start.elapsed() > Duration::from_secs(60) {
                    bail!("the other one did not come");
                }
                std::thread::yield_now();
            }
            Ok(StepOutcome::Passed)
        }
        let steps = [beside(step("one", meet)), beside(step("other", meet))];
        let reports = run_all(&steps.iter().collect::<Vec<_>>(), &session());
        assert!(reports.iter().all(|report| !report.failed()));
    }
}
