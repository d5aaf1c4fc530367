//! `cargo xtask mutants`: puts faults of one line into a copy of the engine, one at a time, and runs
//! the simulator on each. The simulator must fail, so this shows that its invariants would notice
//! such a mistake.
//!
//! The faults are listed in `engine.txt`. A line that a change has moved or rewritten ends the run
//! with a message: the fault must then be written anew, since a fault that is not put in proves
//! nothing.

mod mutant;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use task_support::process;
use task_support::workspace::{self, Workspace};

use mutant::Mutant;

const LIST: &str = include_str!("mutants/engine.txt");

/// The directory of the files that the list names.
const ENGINE: &str = "crates/transport/src/engine";

/// The arguments of cargo that name the simulator.
const SIMULATOR: [&str; 4] = ["-p", "rushmem-transport", "--test", "simulated"];

/// A fault may make the simulator run for ever. Without one it takes 20 s.
const LIMIT: Duration = Duration::from_secs(300);

#[derive(Default, clap::Args)]
pub struct MutantsFlags {
    /// Only faults whose heading contains this text
    #[arg(long, value_name = "TEXT", default_value = "")]
    only: String,
}

/// Runs the simulator with each fault that the flags select. Fails if it does not find one of them.
pub fn run(MutantsFlags { only }: &MutantsFlags) -> Result<()> {
    let workspace = Workspace::open()?;
    let copy = Copy::of(&workspace)?;
    let mutants = mutant::parse(LIST)?;

    // Faults that no longer fit the code are reported before the first takes its time.
    for mutant in &mutants {
        mutant.apply(&copy.source(mutant)?)?;
    }

    if copy.simulate()? == Verdict::Found {
        bail!("the simulator fails without any fault; run its tests");
    }

    let mut missed = Vec::new();
    for mutant in mutants.iter().filter(|mutant| mutant.title.contains(only)) {
        let start = Instant::now();
        let verdict = copy.simulate_with(mutant)?;
        let seconds = start.elapsed().as_secs_f64();
        println!("{seconds:6.1} s  {}  {}", verdict.word(), mutant.title);
        if verdict == Verdict::Missed {
            missed.push(mutant.title.as_str());
        }
    }

    if !missed.is_empty() {
        bail!("the simulator does not find: {}", missed.join("; "));
    }
    Ok(())
}

/// What the simulator says of a copy.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Verdict {
    /// It has failed.
    Found,
    /// It has passed.
    Missed,
}

impl Verdict {
    fn word(self) -> &'static str {
        match self {
            Verdict::Found => "found ",
            Verdict::Missed => "MISSED",
        }
    }
}

/// A copy of the repository in the build directory, so that a run that is interrupted leaves no
/// fault in the files of a developer.
struct Copy {
    root: PathBuf,
}

impl Copy {
    fn of(workspace: &Workspace) -> Result<Copy> {
        let root = workspace.target.join("mutants");
        let mut git = workspace.git();
        git.args(["ls-files", "--cached", "--others", "--exclude-standard"]);
        let listed = process::capture(&mut git)?;
        for file in listed.lines() {
            copy_if_changed(&workspace.root.join(file), &root.join(file))?;
        }
        Ok(Copy { root })
    }

    fn path(&self, mutant: &Mutant) -> PathBuf {
        self.root.join(ENGINE).join(&mutant.file)
    }

    fn source(&self, mutant: &Mutant) -> Result<String> {
        let path = self.path(mutant);
        fs::read_to_string(&path).with_context(|| format!("could not read {}", path.display()))
    }

    /// Runs the simulator on the copy with a fault.
    fn simulate_with(&self, mutant: &Mutant) -> Result<Verdict> {
        let source = self.source(mutant)?;
        fs::write(self.path(mutant), mutant.apply(&source)?)?;

        // The fault is taken out even if the copy does not compile with it.
        let verdict = self.simulate();
        fs::write(self.path(mutant), source)?;
        verdict.with_context(|| mutant.title.clone())
    }

    /// Runs the simulator on the copy as it is.
    ///
    /// # Errors
    /// When the copy does not compile: then nothing was shown.
    fn simulate(&self) -> Result<Verdict> {
        let target = self.root.join("target");
        let compiled = workspace::cargo()
            .current_dir(&self.root)
            .env("CARGO_TARGET_DIR", &target)
            .args(["test", "--quiet", "--no-run"])
            .args(SIMULATOR)
            .status()?;
        if !compiled.success() {
            bail!("the copy in {} does not compile", self.root.display());
        }

        let ran = process::limited(LIMIT, workspace::cargo().get_program())
            .current_dir(&self.root)
            .env("CARGO_TARGET_DIR", &target)
            .args(["test", "--quiet"])
            .args(SIMULATOR)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()?;
        Ok(if ran.success() {
            Verdict::Missed
        } else {
            Verdict::Found
        })
    }
}

/// Copies a file unless the copy is the same, whose time then stays, so that cargo compiles little.
fn copy_if_changed(from: &Path, to: &Path) -> Result<()> {
    // A file that is deleted but still in the index is listed, too.
    let Ok(contents) = fs::read(from) else {
        return Ok(());
    };
    if fs::read(to).is_ok_and(|copied| copied == contents) {
        return Ok(());
    }

    let dir = to.parent().context("a file is in a directory")?;
    fs::create_dir_all(dir)?;
    fs::write(to, contents).with_context(|| format!("could not write {}", to.display()))
}
