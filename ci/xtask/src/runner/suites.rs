//! The state that steps share: the workspace, the installed prefix, and the test programs, which
//! are built once.
//!
//! `cargo test -p PACKAGE` would resolve the features of dependencies for each choice of packages,
//! and compile dependencies again whose features differ. Here the steps run programs of one build.
//! If a program fails, the others run nevertheless. If no test runs in a step, the step fails.

use std::cmp::Reverse;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use task_support::process;
use task_support::workspace::{Packages, Selection, TestProgram, Workspace};

use super::tools::{self, StepOutcome, TestTally};

/// The time limit of a test program, which also suffices for soaks. Jobs of tests have shorter
/// limits.
const LIMIT: Duration = Duration::from_secs(3 * 3600);

/// Maximum number of test programs of a step that run at the same time. Many tests wait more than
/// they compute: with three, a fifth of two CPUs stayed idle.
const PROGRAMS_AT_ONCE: usize = 4;

/// The package whose test programs take the longest.
pub const SHMEM_C: &str = "crates/shmem-c";

/// The package of the tasks, whose integration tests are those of the installed prefix.
pub const XTASK: &str = "ci/xtask";

/// The number of programs whose times are printed.
const SHOWN: usize = 10;

/// A set of steps that are run together.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Tier {
    /// `cargo xtask test`
    First,
    /// `cargo xtask test --more`, which has the steps of `First` with all of their tests.
    More,
    /// `cargo xtask test --providers`
    Providers,
    /// `cargo xtask test --full`, which has all steps of the others, and runs tests with all
    /// numbers of PEs.
    Full,
}

/// The state that every step may use.
pub struct TestSession {
    pub workspace: Workspace,
    /// The prefix into which the step `install` installs the library and its tools.
    pub prefix: PathBuf,
    pub suites: Suites,
    /// The requested tier.
    pub tier: Tier,
}

/// The test programs of a workspace. Those of a set of packages are built at the first use.
#[derive(Default)]
pub struct Suites {
    selection: Selection,
    built: Mutex<Vec<(Packages, Vec<TestProgram>)>>,
}

impl Suites {
    /// Returns a part of the test programs.
    pub fn of(selection: Selection) -> Self {
        Self {
            selection,
            ..Self::default()
        }
    }

    /// Returns a run of the programs of a set of packages for which `wanted` is true.
    pub fn choose(
        &self,
        workspace: &Workspace,
        packages: Packages,
        wanted: impl Fn(&TestProgram) -> bool,
    ) -> Result<Run> {
        let mut built = self.built.lock().unwrap_or_else(PoisonError::into_inner);
        let index = match built.iter().position(|(of, _)| *of == packages) {
            Some(index) => index,
            None => {
                built.push((
                    packages,
                    workspace.test_programs(packages, &self.selection)?,
                ));
                built.len() - 1
            }
        };
        let (_, programs) = &built[index];

        let mut chosen: Vec<_> = programs.iter().filter(|program| wanted(program)).collect();
        // The longest begin first. If one began last, the other lanes would be idle meanwhile.
        chosen.sort_by_key(|program| program.dir != SHMEM_C);

        let mut run = Run::default();
        for program in chosen {
            let mut command = process::limited(LIMIT, &program.executable);
            command.current_dir(workspace.root.join(&program.dir));
            run.programs.push(RunnableTests {
                name: format!("{} ({})", program.name, program.dir),
                command,
            });
        }
        Ok(run)
    }
}

/// Returns true if a test program of what only developers use tests the installed prefix.
pub fn tests_the_prefix(program: &TestProgram) -> bool {
    program.is_integration && program.dir == XTASK
}

/// A test program that is ready to run.
struct RunnableTests {
    /// The name for messages.
    name: String,
    command: Command,
}

/// The end of a test program.
struct EndedTests {
    name: String,
    took: Duration,
    tally: Result<TestTally>,
}

impl RunnableTests {
    fn run(mut self) -> EndedTests {
        let start = Instant::now();
        let tally = tools::tally(&mut self.command);
        if let Err(error) = &tally {
            println!("{error:#}");
        }
        EndedTests {
            name: self.name,
            took: start.elapsed(),
            tally,
        }
    }
}

/// A run of test programs.
#[derive(Default)]
pub struct Run {
    programs: Vec<RunnableTests>,
}

impl Run {
    /// Adds arguments to all commands, such as names of tests.
    pub fn args<'a>(mut self, arguments: impl IntoIterator<Item = &'a str> + Clone) -> Self {
        for program in &mut self.programs {
            program.command.args(arguments.clone());
        }
        self
    }

    /// Sets an environment variable of all programs.
    pub fn env(mut self, name: &str, value: impl Into<OsString>) -> Self {
        let value = value.into();
        for program in &mut self.programs {
            program.command.env(name, &value);
        }
        self
    }

    /// Adds the programs of another run.
    pub fn and(mut self, other: Self) -> Self {
        self.programs.extend(other.programs);
        self
    }

    /// Runs the programs, several at once, and prints those that took the longest.
    pub fn run(self) -> Result<StepOutcome> {
        let mut ended = in_lanes(PROGRAMS_AT_ONCE, self.programs, RunnableTests::run);

        ended.sort_unstable_by_key(|program| Reverse(program.took));
        for program in ended.iter().take(SHOWN) {
            println!("{:8.1} s  {}", program.took.as_secs_f64(), program.name);
        }

        let mut all = TestTally::default();
        let mut failed = Vec::new();
        for program in ended {
            match program.tally {
                Ok(tally) => all += tally,
                // Printed when the program ended.
                Err(_) => failed.push(program.name),
            }
        }
        if !failed.is_empty() {
            bail!("{} failed", failed.join(", "));
        }
        all.outcome()
    }
}

/// Calls `f` with each item, on `lanes` threads. Returns the results in any order.
pub fn in_lanes<T: Send, R: Send>(
    lanes: usize,
    items: Vec<T>,
    f: impl Fn(T) -> R + Sync,
) -> Vec<R> {
    let items = Mutex::new(items.into_iter());
    let results = Mutex::new(Vec::new());
    let work = || {
        loop {
            // The lock is free while `f` runs.
            let item = items.lock().unwrap_or_else(PoisonError::into_inner).next();
            let Some(item) = item else { break };
            let result = f(item);
            results
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(result);
        }
    };
    // The end of the scope waits for all threads.
    thread::scope(|scope| {
        for _ in 0..lanes {
            scope.spawn(work);
        }
    });
    results.into_inner().unwrap_or_else(PoisonError::into_inner)
}
