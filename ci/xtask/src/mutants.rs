//! `cargo xtask mutants`: puts faults of one line into a copy of the repository, one at a time, and
//! runs the test that must find each. The test must fail, so this shows that the tests would notice
//! such a mistake.
//!
//! The faults are listed in `engine.txt`, `pes.txt` and `crates.txt`. A line that a change has
//! moved or rewritten ends the run with a message: the fault must then be written anew, since a
//! fault that is not put in proves nothing.
//!
//! A fault belongs in `engine.txt` if the simulator of the engine finds it, in `pes.txt` if a test
//! with several PEs in one process does, and otherwise in `crates.txt`, with the test that does.

mod mutant;

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use std::{fs, io};

use anyhow::{Context, Result, bail};
use task_support::process;
use task_support::workspace::{self, Workspace};

use mutant::{Finder, Mutant};

const LISTS: [&str; 3] = [
    include_str!("mutants/engine.txt"),
    include_str!("mutants/pes.txt"),
    include_str!("mutants/crates.txt"),
];

/// A fault may make a test run for ever. Without one, the simulator takes 20 s.
const LIMIT: Duration = Duration::from_secs(300);

#[derive(Default, clap::Args)]
pub struct MutantsFlags {
    /// Only faults whose heading contains this text
    #[arg(long, value_name = "TEXT", default_value = "")]
    only: String,
}

/// Puts in each fault that the flags select. Fails if its test does not find one of them.
pub fn run(MutantsFlags { only }: &MutantsFlags) -> Result<()> {
    let workspace = Workspace::open()?;
    let copy = Copy::of(&workspace)?;
    let mut mutants = listed()?;

    // Faults that no longer fit the code are reported before the first takes its time.
    for mutant in &mutants {
        mutant.apply(&copy.source(mutant)?)?;
    }

    mutants.retain(|mutant| mutant.title.contains(only));
    copy.require_passes(&mutants)?;

    let mut missed = Vec::new();
    for mutant in &mutants {
        let start = Instant::now();
        let verdict = copy.test_with(mutant)?;
        let seconds = start.elapsed().as_secs_f64();
        println!("{seconds:6.1} s  {}  {}", verdict.word(), mutant.title);
        if verdict == Verdict::Missed {
            missed.push(mutant.title.as_str());
        }
    }

    if !missed.is_empty() {
        bail!("the tests do not find: {}", missed.join("; "));
    }
    Ok(())
}

/// Returns the faults of all lists.
fn listed() -> Result<Vec<Mutant>> {
    let mut mutants = Vec::new();
    for list in LISTS {
        mutants.extend(mutant::parse(list)?);
    }
    Ok(mutants)
}

/// What a test says of a copy.
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
        // A deleted file that is still in the index is listed, too, and so is the directory of a
        // nested repository.
        let files = listed
            .lines()
            .filter(|file| workspace.root.join(file).is_file())
            .map(Path::new)
            .collect();
        copy(&workspace.root, &root, &files)?;
        Ok(Copy { root })
    }

    /// Runs each test that must find a fault without any.
    ///
    /// # Errors
    /// When one of them fails: then it would find whatever is put in.
    fn require_passes(&self, mutants: &[Mutant]) -> Result<()> {
        let mut passed = Vec::new();
        for Mutant { finder, .. } in mutants {
            if passed.contains(&finder) {
                continue;
            }
            if self.test(finder)? == Verdict::Found {
                bail!("{} fails without any fault", finder.arguments.join(" "));
            }
            passed.push(finder);
        }
        Ok(())
    }

    fn source(&self, mutant: &Mutant) -> Result<String> {
        let path = self.root.join(&mutant.file);
        fs::read_to_string(&path).with_context(|| format!("could not read {}", path.display()))
    }

    /// Runs the test of a fault on the copy with the fault.
    fn test_with(&self, mutant: &Mutant) -> Result<Verdict> {
        let path = self.root.join(&mutant.file);
        let source = self.source(mutant)?;
        fs::write(&path, mutant.apply(&source)?)?;

        // The fault is taken out even if the copy does not compile with it.
        let verdict = self.test(&mutant.finder);
        fs::write(&path, source)?;
        verdict.with_context(|| mutant.title.clone())
    }

    /// Runs a test on the copy as it is.
    ///
    /// # Errors
    /// When the copy does not compile: then nothing was shown.
    fn test(&self, finder: &Finder) -> Result<Verdict> {
        if finder.needs_prefix {
            let mut install = workspace::cargo();
            install.args(["xtask", "test", "--only", "install"]);
            process::run(self.in_copy(&mut install).stdout(Stdio::null()))?;
        }

        let mut compile = workspace::cargo();
        compile.args(["test", "--quiet", "--no-run"]);
        process::run(self.in_copy(compile.args(&finder.arguments)))?;

        let mut test = process::limited(LIMIT, workspace::cargo().get_program());
        test.args(["test", "--quiet"]).args(&finder.arguments);
        Ok(if process::succeeds(self.in_copy(&mut test)) {
            Verdict::Missed
        } else {
            Verdict::Found
        })
    }

    /// Has a command use the files, the build directory and the installed prefix of the copy.
    fn in_copy<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        let target = self.root.join("target");
        let prefix = target.join("test-prefix");
        command
            .current_dir(&self.root)
            .env("OSHRUN", prefix.join("bin/oshrun"))
            .env("RUSHMEM_PREFIX", prefix)
            .env("CARGO_TARGET_DIR", target)
    }
}

/// Makes the directory `to` a copy of these files of `from`. The build directory in it stays.
fn copy(from: &Path, to: &Path, files: &HashSet<&Path>) -> Result<()> {
    fs::create_dir_all(to).with_context(|| format!("could not make {}", to.display()))?;
    remove_others(to, to, files)?;
    for file in files {
        let source = from.join(file);
        copy_if_changed(&source, &to.join(file))
            .with_context(|| format!("could not copy {}", source.display()))?;
    }
    Ok(())
}

/// Removes the files below `dir` of a copy that are not among `files`, and the directories that
/// become empty: cargo would still compile tests that the repository no longer has, and take such a
/// directory for a package.
fn remove_others(root: &Path, dir: &Path, files: &HashSet<&Path>) -> Result<()> {
    for entry in fs::read_dir(dir).with_context(|| format!("could not read {}", dir.display()))? {
        let entry = entry?;
        let path = entry.path();
        let file = path.strip_prefix(root)?;
        if entry.file_type()?.is_dir() {
            if file != Path::new("target") {
                remove_others(root, &path, files)?;
                remove_if_empty(&path)
                    .with_context(|| format!("could not remove {}", path.display()))?;
            }
        } else if !files.contains(file) {
            fs::remove_file(&path)
                .with_context(|| format!("could not remove {}", path.display()))?;
        }
    }
    Ok(())
}

fn remove_if_empty(dir: &Path) -> io::Result<()> {
    match fs::remove_dir(dir) {
        Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => Ok(()),
        removed => removed,
    }
}

/// Copies a file with its permissions. Does not write a copy that has the same bytes, so that cargo
/// does not compile it again.
fn copy_if_changed(from: &Path, to: &Path) -> io::Result<()> {
    let contents = fs::read(from)?;
    if fs::read(to).is_ok_and(|copied| copied == contents) {
        return fs::set_permissions(to, fs::metadata(from)?.permissions());
    }

    if let Some(dir) = to.parent() {
        fs::create_dir_all(dir)?;
    }
    fs::copy(from, to)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test::first::{self, FIRST};
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_copy_has_the_files_and_modes_of_the_repository_alone() {
        let dir = tempfile::tempdir().expect("a directory");
        let [from, to] = ["from", "to"].map(|name| dir.path().join(name));
        fs::create_dir_all(from.join("tests")).expect("a directory");
        fs::create_dir_all(to.join("target")).expect("a directory");
        for file in ["from/kept.sh", "from/tests/deleted.rs", "to/target/built"] {
            fs::write(dir.path().join(file), file).expect("a file");
        }
        let [kept, deleted] = ["kept.sh", "tests/deleted.rs"].map(Path::new);
        copy(&from, &to, &HashSet::from([kept, deleted])).expect("a copy");
        assert!(to.join(deleted).exists());

        fs::set_permissions(from.join(kept), Permissions::from_mode(0o755)).expect("a mode");
        copy(&from, &to, &HashSet::from([kept])).expect("a copy");
        let mode = fs::metadata(to.join(kept)).expect("a copy").permissions();
        assert_eq!(mode.mode() & 0o777, 0o755);
        assert!(!to.join("tests").exists());
        assert!(to.join("target/built").exists());
    }

    #[test]
    fn a_file_that_cannot_be_read_is_an_error() {
        let dir = tempfile::tempdir().expect("a directory");
        let [from, to] = ["from", "to"].map(|name| dir.path().join(name));
        let not_a_file = Path::new("directory");
        fs::create_dir_all(from.join(not_a_file)).expect("a directory");
        let copied = copy(&from, &to, &HashSet::from([not_a_file]));
        let error = copied.expect_err("a directory cannot be read").to_string();
        assert!(error.starts_with("could not copy "), "{error}");
    }

    #[test]
    fn every_fault_fits_the_code() {
        let workspace = Workspace::open().expect("a workspace");
        for mutant in listed().expect("lists of faults") {
            let source = fs::read_to_string(workspace.root.join(&mutant.file));
            let faulty = mutant.apply(&source.expect("a file of the repository"));
            assert!(faulty.is_ok(), "{}", faulty.unwrap_err());
        }
    }

    /// The first tier has the unit tests of users' packages without those that it leaves out, and
    /// parts of integration tests.
    #[test]
    fn the_first_tier_finds_every_fault() {
        let workspace = Workspace::open().expect("a workspace");
        let dir_of = |name: &String| {
            let package = workspace.packages.iter().find(|known| known.name == *name);
            &package.expect("a package of the workspace").dir
        };

        for mutant in listed().expect("lists of faults") {
            let is_found = match mutant.finder.arguments.as_slice() {
                // A name that contains the finder's filter contains each part of that filter, too.
                [_, package, kind, program, filter @ ..] if kind == "--test" => {
                    FIRST.iter().any(|part| {
                        part.dir == dir_of(package)
                            && part.program == program
                            && filter.concat().contains(part.name)
                    })
                }
                [_, package, ..] => !first::selection().without.contains(&package.as_str()),
                _ => false,
            };

            assert!(is_found, "{}", mutant.title);
        }
    }
}
