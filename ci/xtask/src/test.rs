//! `cargo xtask test`: runs the tests and checks of this repository in steps.
//!
//! A tier is a table of steps. Each step prints its name and its time. After a failed step the
//! others run, except those that need its result. Some steps run at the same time. A table at the
//! end has the outcome of all steps, with the reasons why some were skipped.

mod bare;
mod fuzz;
mod ordinary;
mod release;
mod sanitizer;
mod steps;
mod suites;
mod tools;

use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use task_support::workspace::Workspace;

use crate::install::TEST_PREFIX;
use suites::{Suites, TestSession, Tier, in_lanes};
use tools::StepOutcome;

struct TestStep {
    name: &'static str,
    /// The step whose result this one needs. If that step fails, this one is skipped.
    after: Option<&'static str>,
    /// True if the step may run at the same time as its neighbors in the table for which this is
    /// true, too: for most of its time it waits, or keeps only one CPU busy.
    is_beside: bool,
    run: fn(&TestSession) -> Result<StepOutcome>,
}

/// Returns a step that needs no other one.
const fn step(name: &'static str, run: fn(&TestSession) -> Result<StepOutcome>) -> TestStep {
    TestStep {
        name,
        after: None,
        is_beside: false,
        run,
    }
}

/// Returns a step that needs the prefix of the step `install`.
const fn installed(name: &'static str, run: fn(&TestSession) -> Result<StepOutcome>) -> TestStep {
    TestStep {
        name,
        after: Some("install"),
        is_beside: false,
        run,
    }
}

/// Returns the step as one that may run at the same time as its neighbors.
const fn beside(step: TestStep) -> TestStep {
    TestStep {
        is_beside: true,
        ..step
    }
}

/// The steps of `cargo xtask test`.
const TEST: &[TestStep] = &[
    step("needs", steps::needs),
    step("format", steps::format),
    step("clippy", steps::clippy),
    step("tidy", steps::tidy),
    step("generated", steps::generated),
    step("install", steps::install),
    installed("tests", steps::tests),
    installed("doc-tests", steps::doc_tests),
    installed("symbols", steps::symbols),
    installed("ordinary-user", ordinary::user),
];

/// The steps of `--bare` before those of [`TEST`].
const BARE: &[TestStep] = &[step("bare", bare::step)];

/// The steps of `--providers`: the conformance suite over the networks, the test programs on
/// several nodes, and other steps that take long.
const PROVIDERS: &[TestStep] = &[
    step("needs", steps::needs),
    step("docs", steps::docs),
    step("bindings", steps::bindings),
    step("install", steps::install),
    beside(installed("counts", steps::counts)),
    beside(installed("samples", steps::samples)),
    beside(step("miri", steps::miri)),
    beside(installed("launchers", steps::launchers)),
    beside(step("ofi", steps::ofi)),
    beside(step("ucx", steps::ucx)),
    beside(step("other-versions", steps::other_versions)),
    beside(installed("faults-sample", steps::faults_sample)),
];

/// The steps of `--full` after those of [`TEST`] and [`PROVIDERS`].
const FULL: &[TestStep] = &[
    installed("slurm", steps::slurm),
    installed("hosts", steps::hosts),
    installed("faults", steps::faults),
    installed("tcp-programs", steps::tcp_programs),
    installed("ucx-programs", steps::ucx_programs),
    installed("ofi-programs", steps::ofi_programs),
    installed("strict-programs", steps::strict_programs),
    step("ofi-providers", steps::ofi_providers),
    installed("soak", steps::soak),
    installed("thread-sanitizer", sanitizer::thread_sanitizer),
    step("fuzz", fuzz::decoders),
    step("verbs", steps::verbs),
    step("release", release::files),
    step("book", steps::book),
    step("dependencies", steps::dependencies),
    installed("aarch64", steps::aarch64),
    step("oldest-rust", steps::oldest_rust),
];

/// Returns the steps of `--full`: those of all tiers, each once.
fn all() -> Vec<&'static TestStep> {
    let mut all: Vec<&TestStep> = Vec::new();
    for step in [TEST, PROVIDERS, FULL].into_iter().flatten() {
        if !all.iter().any(|before| before.name == step.name) {
            all.push(step);
        }
    }
    all
}

/// Returns a sentence that says which tier has a step of this name, or that there is none.
fn elsewhere(name: &str) -> String {
    let has = |tier: &[TestStep]| tier.iter().any(|step| step.name == name);
    let tier = [
        (TEST, ""),
        (PROVIDERS, " --providers"),
        (FULL, " --full"),
        (BARE, " --bare"),
    ];
    match tier.iter().find(|(tier, _)| has(tier)) {
        Some((_, option)) => format!("the step `{name}` is one of `cargo xtask test{option}`"),
        None => format!("there is no step `{name}`; `cargo xtask test --full --list` shows all"),
    }
}

#[derive(clap::Args)]
pub struct TestFlags {
    /// The networks, other launchers and Miri instead
    #[arg(long)]
    providers: bool,
    /// Everything, also soaks, sanitizers and virtual machines
    #[arg(long, conflicts_with = "providers")]
    full: bool,
    /// Hide the libraries of networks and other launchers, as if they were not installed
    #[arg(long, conflicts_with_all = ["providers", "full"])]
    bare: bool,
    /// This step alone
    #[arg(long, value_name = "STEP")]
    only: Vec<String>,
    /// Print the names of the steps
    #[arg(long)]
    list: bool,
}

pub fn run(
    TestFlags {
        providers,
        full,
        bare,
        only,
        list,
    }: TestFlags,
) -> Result<()> {
    let (tier, mut chosen): (_, Vec<&TestStep>) = match (providers, full, bare) {
        (true, ..) => (Tier::Providers, PROVIDERS.iter().collect()),
        (_, true, _) => (Tier::Full, all()),
        (.., true) => (
            Tier::Usual,
            [BARE].into_iter().flatten().chain(TEST).collect(),
        ),
        _ => (Tier::Usual, TEST.iter().collect()),
    };
    if let Some(unknown) = only
        .iter()
        .find(|name| !chosen.iter().any(|step| step.name == **name))
    {
        bail!("{}", elsewhere(unknown));
    }
    chosen.retain(|step| only.is_empty() || only.iter().any(|name| name == step.name));
    if list {
        chosen.iter().for_each(|step| println!("{}", step.name));
        return Ok(());
    }
    let workspace = Workspace::open()?;
    let prefix = workspace.target.join(TEST_PREFIX);
    let session = TestSession {
        prefix,
        workspace,
        suites: Suites::default(),
        tier,
    };
    if bare {
        // Packages cannot be installed while files are hidden.
        if chosen.iter().any(|step| step.name == "needs") {
            steps::needs(&session)?;
        }
        bare::enter(&session.workspace.target)?;
    }
    let start = Instant::now();
    let results = run_all(&chosen, &session);
    print!("{}", summary(&results, start.elapsed()));
    match results.iter().find(|result| result.failed()) {
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
        let ended = in_lanes(beside.to_vec(), |step| run_step(step, &reports, session));
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
            tier: Tier::Usual,
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

    #[test]
    fn a_step_of_another_tier_is_named_with_its_tier() {
        let refused = |providers, only: &str| {
            let only = vec![only.to_owned()];
            let flags = TestFlags {
                providers,
                full: false,
                bare: false,
                only,
                list: true,
            };
            run(flags).unwrap_err().to_string()
        };
        let hosts = "the step `hosts` is one of `cargo xtask test --full`";
        assert_eq!(refused(false, "hosts"), hosts);
        assert_eq!(refused(true, "hosts"), hosts);
        let tests = "the step `tests` is one of `cargo xtask test`";
        assert_eq!(refused(true, "tests"), tests);
        assert!(refused(false, "host").starts_with("there is no step `host`"));
    }

    #[test]
    fn every_step_that_is_named_as_a_condition_comes_before() {
        for tier in [TEST.iter().collect(), PROVIDERS.iter().collect(), all()] {
            for (index, step) in tier.iter().enumerate() {
                if let Some(after) = step.after {
                    assert!(
                        tier[..index].iter().any(|before| before.name == after),
                        "{}",
                        step.name
                    );
                }
            }
        }
    }
}
