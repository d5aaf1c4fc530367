//! `cargo xtask test --bare`: the tests as on a machine without the libraries of networks and
//! without the launchers of others.
//!
//! In a namespace for mounts, an overlay lies over each directory that holds some of these files.
//! Its upper layer has nothing but whiteouts of their names, so that they do not exist there, and
//! nothing can be written. The linker's cache still names the libraries.

use std::collections::BTreeSet;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, fs};

use anyhow::{Context, Result, bail};
use task_support::{needs, process};

use super::outcome::StepOutcome;
use super::session::TestSession;

/// How the names of the libraries begin: those of UCX, libfabric and PMIx.
const LIBRARIES: &[&str] = &["libucp.", "libuct.", "libucs.", "libucm.", "libfabric.", "libpmix."];

/// How the names of the programs begin: Open MPI's and MPICH's launchers, and what comes with the
/// libraries.
const PROGRAMS: &[&str] =
    &["mpirun", "mpiexec", "orterun", "prte", "prun", "hydra_", "ucx_info", "fi_info"];

/// Covers the directories of the files before `--`, and runs the command after it. The files of a
/// directory follow each other.
const COVER: &str = r#"
set -e
mount -t tmpfs tmpfs "$stage"
for file; do
    if [ "$file" = -- ]; then break; fi
    mkdir -p "$stage${file%/*}"
    mknod "$stage$file" c 0 0
done
until [ "$1" = -- ]; do
    dir=${1%/*}
    if [ "$dir" != "$covered" ]; then
        mount -t overlay -o "lowerdir=$stage$dir:$dir" overlay "$dir"
        covered=$dir
    fi
    shift
done
shift
"#;

/// Fails if one of the files exists.
const ARE_GONE: &str = r#"for file; do if [ -e "$file" ] || [ -h "$file" ]; then exit 1; fi; done"#;

/// Runs this program again where the files are hidden, and does not return. Returns if there are
/// none, or after it said why they cannot be hidden.
pub fn enter(target: &Path) -> Result<()> {
    let files = files();
    if files.is_empty() {
        return Ok(());
    }
    let stage = target.join("bare");
    fs::create_dir_all(&stage)?;
    match probe(&files, &stage) {
        Ok(()) => {
            let mut this = hiding(&files, &stage);
            let this = this.arg(env::current_exe()?).args(env::args_os().skip(1));
            Err(this.exec()).context("could not start unshare")
        }
        Err(why) => {
            println!("The libraries and launchers of others cannot be hidden: {why:#}");
            Ok(())
        }
    }
}

/// The step that says whether they are hidden.
pub fn step(_: &TestSession) -> Result<StepOutcome> {
    let left = files();
    let names: Vec<_> = left.iter().filter_map(|file| file.file_name()?.to_str()).collect();
    Ok(match names.as_slice() {
        [] => StepOutcome::Passed,
        names => StepOutcome::Skipped(format!("they are not hidden: {}", names.join(", "))),
    })
}

/// Returns the files to be hidden, those of a directory together.
fn files() -> BTreeSet<PathBuf> {
    let ldconfig = |path| process::capture(Command::new(path).arg("-p"));
    let known = ldconfig("ldconfig").or_else(|_| ldconfig("/sbin/ldconfig")).unwrap_or_default();
    let cached = known.lines().filter_map(|line| Some(Path::new(line.rsplit_once("=> ")?.1)));
    let mut libraries: BTreeSet<PathBuf> =
        cached.filter_map(|file| file.parent()?.canonicalize().ok()).collect();
    libraries.extend(listed("LD_LIBRARY_PATH"));
    let libraries = libraries.iter().flat_map(|dir| beginning(dir, LIBRARIES));
    let programs = listed("PATH").into_iter().flat_map(|dir| beginning(&dir, PROGRAMS));
    libraries.chain(programs).collect()
}

/// Returns the directories that a variable lists.
fn listed(variable: &str) -> Vec<PathBuf> {
    let list = env::var_os(variable).unwrap_or_default();
    env::split_paths(&list).filter_map(|dir| dir.canonicalize().ok()).collect()
}

/// Returns the files of a directory whose names begin in one of these ways.
fn beginning(dir: &Path, starts: &[&str]) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let is_one = |file: &PathBuf| {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        starts.iter().any(|start| name.starts_with(start))
    };
    entries.map(|entry| entry.path()).filter(is_one).collect()
}

/// Fails with the reason if the files cannot be hidden.
fn probe(files: &BTreeSet<PathBuf>, stage: &Path) -> Result<()> {
    let mut probe = hiding(files, stage);
    probe.args(["sh", "-c", ARE_GONE, "sh"]).args(files).stdin(Stdio::null());
    let output = probe.output().context("could not start unshare")?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("{}", said.lines().next().unwrap_or("overlays do not hide them here"));
    }
    Ok(())
}

/// Returns a command that runs the one of its further arguments where the files are hidden.
fn hiding(files: &BTreeSet<PathBuf>, stage: &Path) -> Command {
    let mut command = Command::new("unshare");
    command.env("stage", stage);
    let run = if needs::is_root() {
        "exec \"$@\""
    } else {
        // Root in a namespace for users mounts, and becomes the same user again in one more.
        command.args(["--user", "--map-root-user"]);
        for (variable, option) in [("user", "-u"), ("group", "-g")] {
            let id = process::capture(Command::new("id").arg(option)).unwrap_or_default();
            command.env(variable, id.trim());
        }
        "exec unshare --user --map-user=\"$user\" --map-group=\"$group\" -- \"$@\""
    };
    let script = format!("{COVER}{run}");
    command.args(["--mount", "sh", "-c", &script, "sh"]).args(files).arg("--");
    command
}
