//! What steps share: the workspace, the installed prefix, and the programs of tests, which are
//! built once.
//!
//! `cargo test -p PACKAGE` would resolve the features of dependencies anew for each choice of
//! packages, and compile again those that get others. Here every step runs programs of one build. A
//! program that fails does not keep those after it from running. A choice of which no test ran is a
//! failure.

use std::cmp::Reverse;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use task_support::process;
use task_support::workspace::{TestProgram, Workspace};

use super::tools::{self, StepOutcome, TestTally};

/// No program of tests takes longer, soaks included. Each ends its own jobs long before.
const LIMIT: Duration = Duration::from_secs(3 * 3600);

/// The number of programs that run at the same time, and of steps that run beside each other. Many
/// tests wait more than they compute.
const LANES: usize = 3;

/// The package whose programs of tests take the longest.
pub const SHMEM_C: &str = "crates/shmem-c";

/// The number of programs whose times are printed.
const SHOWN: usize = 10;

/// Steps that are run together.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Tier {
    /// `cargo xtask test`
    Usual,
    /// `cargo xtask test --providers`
    Providers,
    /// `cargo xtask test --full`, which has all steps of the others, and runs tests at all sizes.
    Full,
}

/// The state that every step may use.
pub struct TestSession {
    pub workspace: Workspace,
    /// The prefix into which the step `install` installs the library and its tools.
    pub prefix: PathBuf,
    /// The programs of tests.
    pub suites: Suites,
    /// The tier that was asked for.
    pub tier: Tier,
}

/// All programs of tests of a workspace, built at the first use.
#[derive(Default)]
pub struct Suites(Mutex<Vec<TestProgram>>);

impl Suites {
    /// Returns a run of those for which `wanted` is true.
    pub fn choose(
        &self,
        workspace: &Workspace,
        wanted: impl Fn(&TestProgram) -> bool,
    ) -> Result<Run> {
        let mut programs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if programs.is_empty() {
            *programs = workspace.test_programs()?;
        }
        let placed = |program: &TestProgram| {
            let mut command = process::limited(LIMIT, &program.executable);
            command.current_dir(workspace.root.join(&program.dir));
            (format!("{} ({})", program.name, program.dir), command)
        };
        let mut wanted: Vec<_> = programs.iter().filter(|program| wanted(program)).collect();
        // The longest begin first: at the end, one alone would keep the others waiting.
        wanted.sort_by_key(|program| program.dir != SHMEM_C);
        Ok(Run { programs: wanted.into_iter().map(placed).collect() })
    }
}

/// Programs that are about to be run.
pub struct Run {
    programs: Vec<(String, Command)>,
}

impl Run {
    /// Adds arguments, such as names of tests.
    pub fn args<'a>(mut self, arguments: impl IntoIterator<Item = &'a str> + Clone) -> Self {
        for (_, command) in &mut self.programs {
            command.args(arguments.clone());
        }
        self
    }

    /// Sets a variable in their environment.
    pub fn env(mut self, name: &str, value: impl Into<OsString>) -> Self {
        let value = value.into();
        for (_, command) in &mut self.programs {
            command.env(name, &value);
        }
        self
    }

    /// Adds the programs of another choice.
    pub fn and(mut self, other: Self) -> Self {
        self.programs.extend(other.programs);
        self
    }

    /// Runs all of them, several at once, and prints which took the longest.
    pub fn run(self) -> Result<StepOutcome> {
        let mut ended = in_lanes(self.programs, |(name, mut command)| {
            let start = Instant::now();
            let tally = tools::tally(&mut command);
            if let Err(error) = &tally {
                println!("{error:#}");
            }
            (start.elapsed(), name, tally)
        });
        ended.sort_unstable_by_key(|(time, ..)| Reverse(*time));
        for (time, name, _) in ended.iter().take(SHOWN) {
            println!("{:8.1} s  {name}", time.as_secs_f64());
        }
        let (mut all, mut failed) = (TestTally::default(), Vec::new());
        for (_, name, tally) in ended {
            match tally {
                Ok(tally) => all += tally,
                Err(_) => failed.push(name),
            }
        }
        if !failed.is_empty() {
            bail!("{} failed", failed.join(", "));
        }
        all.outcome()
    }
}

/// Calls `f` with each item, with several at once. Returns the results in no order.
pub fn in_lanes<T: Send, R: Send>(items: Vec<T>, f: impl Fn(T) -> R + Sync) -> Vec<R> {
    let items = Mutex::new(items.into_iter());
    let next = || items.lock().unwrap_or_else(PoisonError::into_inner).next();
    let lane = || std::iter::from_fn(next).map(&f).collect::<Vec<R>>();
    thread::scope(|scope| {
        let lanes: Vec<_> = (0..LANES).map(|_| scope.spawn(lane)).collect();
        lanes.into_iter().flat_map(|lane| lane.join().expect("a lane does not panic")).collect()
    })
}
