//! `cargo xtask test`: runs the tests of this repository in steps. A tier is a table of steps.

mod bare;
mod docs;
pub mod first;
mod fuzz;
mod kernel_symbols;
mod ordinary;
mod sanitizer;
mod steps;

use anyhow::{Result, bail};
use task_support::installation::TEST_PREFIX;
use task_support::workspace::Workspace;

use crate::check::CHECK;
use crate::runner::{
    self, StepFlags, Suites, TestSession, TestStep, Tier, beside, installed, step,
};

/// The steps of `cargo xtask test`.
const FIRST: &[TestStep] = &[
    step("needs", steps::needs),
    // An installation also links, while cargo builds.
    beside(step("install", steps::install)),
    beside(step("build", steps::build)),
    installed("tests", steps::tests),
    installed("symbols", steps::symbols),
];

/// The steps of `--more`.
const MORE: &[TestStep] = &[
    step("needs", steps::needs),
    beside(step("install", steps::install)),
    beside(step("build", steps::build)),
    installed("tests", steps::tests),
    installed("doc-tests", steps::doc_tests),
    installed("symbols", steps::symbols),
    installed("ordinary-user", ordinary::user),
];

/// The step of `--bare` before the others.
const BARE: &[TestStep] = &[step("bare", bare::step)];

/// The steps of `--providers`: the conformance suite over the networks, the test programs on
/// several nodes, and other steps that take long.
const PROVIDERS: &[TestStep] = &[
    step("needs", steps::needs),
    step("install", steps::install),
    // First the builds, then what waits for most of its time.
    beside(step("docs", docs::step)),
    beside(installed("counts", steps::counts)),
    beside(step("miri", steps::miri)),
    beside(installed("launchers", steps::launchers)),
    beside(installed("samples", steps::samples)),
    beside(installed("pages", steps::pages)),
    beside(step("ofi", steps::ofi)),
    beside(step("ucx", steps::ucx)),
    beside(step("other-versions", steps::other_versions)),
    beside(installed("faults-sample", steps::faults_sample)),
    beside(step("crates", steps::crates)),
];

/// The steps of `--full` after those of `cargo xtask check`, [`MORE`] and [`PROVIDERS`].
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
    step("mutants", steps::mutants),
    step("verbs", steps::verbs),
    step("release", steps::release),
    step("bindings", steps::bindings),
    step("book", steps::book),
    step("dependencies", steps::dependencies),
    installed("aarch64", steps::aarch64),
    step("oldest-rust", steps::oldest_rust),
];

/// Returns the steps of `--full`: those of `cargo xtask check` and of all tiers, each once.
fn all() -> Vec<&'static TestStep> {
    let mut all: Vec<&TestStep> = Vec::new();
    for step in [CHECK, MORE, PROVIDERS, FULL].into_iter().flatten() {
        if !all.iter().any(|before| before.name == step.name) {
            all.push(step);
        }
    }
    all
}

/// Returns a sentence that says which command has a step of this name, or that there is none.
fn elsewhere(name: &str) -> String {
    let has = |steps: &[TestStep]| steps.iter().any(|step| step.name == name);
    let commands = [
        (CHECK, "check"),
        (FIRST, "test"),
        (MORE, "test --more"),
        (PROVIDERS, "test --providers"),
        (FULL, "test --full"),
        (BARE, "test --bare"),
    ];
    match commands.iter().find(|(steps, _)| has(steps)) {
        Some((_, command)) => format!("the step `{name}` is one of `cargo xtask {command}`"),
        None => format!("there is no step `{name}`; `cargo xtask test --full --list` shows all"),
    }
}

#[derive(clap::Args)]
pub struct TestFlags {
    /// All tests that need no other library or launcher, and not only the first
    #[arg(long, conflicts_with_all = ["providers", "full"])]
    more: bool,
    /// The networks, other launchers and Miri instead
    #[arg(long)]
    providers: bool,
    /// Everything, also `cargo xtask check`, soaks, sanitizers and virtual machines
    #[arg(long, conflicts_with = "providers")]
    full: bool,
    /// Hide the libraries of networks and other launchers, as if they were not installed
    #[arg(long, conflicts_with_all = ["providers", "full"])]
    bare: bool,
    #[command(flatten)]
    steps: StepFlags,
}

impl TestFlags {
    fn tier(&self) -> Tier {
        if self.providers {
            Tier::Providers
        } else if self.full {
            Tier::Full
        } else if self.more {
            Tier::More
        } else {
            Tier::First
        }
    }

    /// Returns all steps of the tier.
    fn table(&self) -> Vec<&'static TestStep> {
        let steps = match self.tier() {
            Tier::First => FIRST,
            Tier::More => MORE,
            Tier::Providers => PROVIDERS,
            Tier::Full => return all(),
        };
        let before = if self.bare { BARE } else { &[] };
        before.iter().chain(steps).collect()
    }
}

/// The size to which the build directory grows by the steps without an option, in GB.
const DISK: u32 = 8;

pub fn run(flags: TestFlags) -> Result<()> {
    let table = flags.table();
    if let Some(unknown) = flags.steps.unknown(&table) {
        bail!("{}", elsewhere(unknown));
    }
    let chosen = flags.steps.choose(table);
    if flags.steps.list {
        for step in chosen {
            println!("{}", step.name);
        }
        return Ok(());
    }

    if flags.providers {
        kernel_symbols::hide()?;
    }
    let workspace = Workspace::open()?;
    let session = TestSession {
        prefix: workspace.target.join(TEST_PREFIX),
        workspace,
        suites: match flags.tier() {
            Tier::First => Suites::of(first::selection()),
            _ => Suites::default(),
        },
        tier: flags.tier(),
    };
    if flags.steps.only.is_empty() {
        println!(
            "This builds Rushmem and its tests in {}, which grows to {DISK} GB, and installs Rushmem in its \
             directory {TEST_PREFIX}.",
            session.workspace.target.display()
        );
    }
    if flags.bare {
        // Packages cannot be installed while files are hidden.
        if chosen.iter().any(|step| step.name == "needs") {
            steps::needs(&session)?;
        }
        bare::enter(&session.workspace.target)?;
    }
    runner::run(&chosen, &session)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_of_another_tier_is_named_with_its_tier() {
        let refused = |providers, only: &str| {
            let steps = StepFlags {
                only: vec![only.to_owned()],
                list: true,
            };
            let flags = TestFlags {
                more: false,
                providers,
                full: false,
                bare: false,
                steps,
            };
            run(flags).unwrap_err().to_string()
        };
        let hosts = "the step `hosts` is one of `cargo xtask test --full`";
        assert_eq!(refused(false, "hosts"), hosts);
        assert_eq!(refused(true, "hosts"), hosts);
        let tests = "the step `tests` is one of `cargo xtask test`";
        assert_eq!(refused(true, "tests"), tests);
        let format = "the step `format` is one of `cargo xtask check`";
        assert_eq!(refused(false, "format"), format);
        assert!(refused(false, "host").starts_with("there is no step `host`"));
    }

    #[test]
    fn every_step_that_is_named_as_a_condition_comes_before() {
        for tier in [
            FIRST.iter().collect(),
            MORE.iter().collect(),
            PROVIDERS.iter().collect(),
            all(),
        ] {
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
