//! `cargo xtask check`: what every change must pass besides the tests of what users build: format,
//! lints, structure, generated files that are up to date, and the tests of the tools of this
//! repository.

use anyhow::{Result, bail};
use task_support::workspace::{Packages, Workspace};
use task_support::{installation, process};

use crate::codegen::{self, CodegenFlags};
use crate::runner::{
    self, StepFlags, StepOutcome, Suites, TestSession, TestStep, Tier, of_task, passed, step,
    tests_the_prefix,
};
use crate::tidy;

/// The steps of `cargo xtask check`.
pub const CHECK: &[TestStep] = &[
    step("format", format),
    step("tidy", tidy),
    step("clippy", clippy),
    step("generated", generated),
    step("tools", tools),
];

/// The manifest of the fuzz targets, which are a workspace of their own.
const FUZZ: &str = "ci/fuzz/Cargo.toml";

pub fn run(flags: StepFlags) -> Result<()> {
    let table: Vec<&TestStep> = CHECK.iter().collect();
    if let Some(unknown) = flags.unknown(&table) {
        bail!("there is no step `{unknown}`; `cargo xtask check --list` shows all");
    }
    let chosen = flags.choose(table);
    if flags.list {
        for step in chosen {
            println!("{}", step.name);
        }
        return Ok(());
    }

    let workspace = Workspace::open()?;
    let session = TestSession {
        prefix: workspace.target.join(installation::TEST_PREFIX),
        workspace,
        suites: Suites::default(),
        tier: Tier::First,
    };
    runner::run(&chosen, &session)
}

fn format(session: &TestSession) -> Result<StepOutcome> {
    let mut fuzz = session.workspace.cargo();
    process::run(fuzz.args(["fmt", "--manifest-path", FUZZ, "--check"]))?;
    passed(session.workspace.cargo().args(["fmt", "--all", "--check"]))
}

fn tidy(_: &TestSession) -> Result<StepOutcome> {
    of_task(tidy::run())
}

fn clippy(session: &TestSession) -> Result<StepOutcome> {
    let mut cargo = session.workspace.cargo();
    passed(cargo.args([
        "clippy",
        "--workspace",
        "--all-targets",
        "--",
        "-D",
        "warnings",
    ]))
}

fn generated(session: &TestSession) -> Result<StepOutcome> {
    // A dependency of a crate that the fuzz targets use changes their lock file, too.
    let mut fuzz = session.workspace.cargo();
    process::run(fuzz.args(["fetch", "--manifest-path", FUZZ, "--locked"]))?;
    of_task(codegen::run(&CodegenFlags { check: true }))
}

/// Runs the tests of what only developers of this repository use, except those of the installed
/// prefix.
fn tools(session: &TestSession) -> Result<StepOutcome> {
    session
        .suites
        .choose(&session.workspace, Packages::Tools, |program| {
            !tests_the_prefix(program)
        })?
        .run()
}
