//! `cargo xtask test --bare`: runs the tests as on a machine without the libraries of networks and
//! without other launchers.
//!
//! In a mount namespace, a read-only overlay covers each directory that has some of these files.
//! The upper layer of the overlay consists of whiteouts with the names of these files, which hide
//! them. The cache of the dynamic linker still names the libraries.

use std::collections::BTreeSet;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, fs};

use anyhow::{Context, Result, bail};
use task_support::{needs, process};

use crate::runner::{StepOutcome, TestSession};

/// Prefixes of the file names of libraries: UCX, libfabric and PMIx.
const LIBRARIES: &[&str] = &[
    "libucp.",
    "libuct.",
    "libucs.",
    "libucm.",
    "libfabric.",
    "libpmix.",
];

/// Prefixes of the names of programs: the launchers of Open MPI and MPICH, and the tools of the
/// libraries.
const PROGRAMS: &[&str] = &[
    "mpirun", "mpiexec", "orterun", "prte", "prun", "hydra_", "ucx_info", "fi_info",
];

/// A shell script whose arguments are the files, `--` and a command. It covers the directories of
/// the files and runs the command. The files are sorted, so that those of one directory are mostly
/// consecutive.
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

/// A shell script that fails if one of its arguments is a file that exists.
const ARE_GONE: &str = r#"for file; do if [ -e "$file" ] || [ -h "$file" ]; then exit 1; fi; done"#;

/// Replaces this process by the same program in a namespace in which the files are hidden. Returns
/// `Ok` only if there are no such files, or if they cannot be hidden, after it has printed the
/// reason.
pub fn enter(target: &Path) -> Result<()> {
    let files = files();
    if files.is_empty() {
        return Ok(());
    }

    let stage = target.join("bare");
    fs::create_dir_all(&stage)?;
    if let Err(why) = probe(&files, &stage) {
        println!("The libraries and launchers of others cannot be hidden: {why:#}");
        return Ok(());
    }

    let mut this = hiding(&files, &stage);
    this.arg(env::current_exe()?).args(env::args_os().skip(1));
    // It returns only if it fails.
    Err(this.exec()).context("could not start unshare")
}

/// The step that passes if the files are hidden, and otherwise names those that are not.
pub fn step(_: &TestSession) -> Result<StepOutcome> {
    let left = files();
    let names: Vec<_> = left
        .iter()
        .filter_map(|file| file.file_name()?.to_str())
        .collect();
    Ok(match names.as_slice() {
        [] => StepOutcome::Passed,
        names => StepOutcome::Skipped(format!("they are not hidden: {}", names.join(", "))),
    })
}

/// Returns the files to be hidden that exist, sorted by path.
fn files() -> BTreeSet<PathBuf> {
    let mut files = BTreeSet::new();
    for dir in library_dirs() {
        files.extend(beginning(&dir, LIBRARIES));
    }
    for dir in listed("PATH") {
        files.extend(beginning(&dir, PROGRAMS));
    }
    files
}

/// Returns the directories in which the dynamic linker finds libraries.
fn library_dirs() -> BTreeSet<PathBuf> {
    // The PATH of users often lacks /sbin.
    let cache = process::capture(Command::new("ldconfig").arg("-p"))
        .or_else(|_| process::capture(Command::new("/sbin/ldconfig").arg("-p")))
        .unwrap_or_default();

    let mut dirs = BTreeSet::new();
    for line in cache.lines() {
        let Some((_, file)) = line.rsplit_once("=> ") else {
            continue;
        };
        if let Some(dir) = Path::new(file).parent()
            && let Ok(dir) = dir.canonicalize()
        {
            dirs.insert(dir);
        }
    }
    dirs.extend(listed("LD_LIBRARY_PATH"));
    dirs
}

/// Returns the directories that a variable lists.
fn listed(variable: &str) -> Vec<PathBuf> {
    let list = env::var_os(variable).unwrap_or_default();
    env::split_paths(&list)
        .filter_map(|dir| dir.canonicalize().ok())
        .collect()
}

/// Returns the files of a directory whose names have one of these prefixes.
fn beginning(dir: &Path, starts: &[&str]) -> Vec<PathBuf> {
    let mut files = Vec::new();
    // A directory that cannot be read has nothing to hide.
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if starts.iter().any(|start| name.starts_with(start)) {
            files.push(entry.path());
        }
    }
    files
}

/// Fails with the reason if the files cannot be hidden.
fn probe(files: &BTreeSet<PathBuf>, stage: &Path) -> Result<()> {
    let mut probe = hiding(files, stage);
    probe
        .args(["sh", "-c", ARE_GONE, "sh"])
        .args(files)
        .stdin(Stdio::null());
    let output = probe.output().context("could not start unshare")?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let first = said.lines().next();
        bail!("{}", first.unwrap_or("overlays do not hide them here"));
    }
    Ok(())
}

/// Returns a command whose further arguments are another command, which it runs in a namespace in
/// which the files are hidden.
fn hiding(files: &BTreeSet<PathBuf>, stage: &Path) -> Command {
    let mut command = Command::new("unshare");
    command.env("stage", stage);
    let run = if needs::is_root() {
        "exec \"$@\""
    } else {
        // To mount takes root in a user namespace. A second user namespace restores the user's IDs.
        command.args(["--user", "--map-root-user"]);
        for (variable, option) in [("user", "-u"), ("group", "-g")] {
            let id = process::capture(Command::new("id").arg(option)).unwrap_or_default();
            command.env(variable, id.trim());
        }
        "exec unshare --user --map-user=\"$user\" --map-group=\"$group\" -- \"$@\""
    };
    let script = format!("{COVER}{run}");
    command
        .args(["--mount", "sh", "-c", &script, "sh"])
        .args(files)
        .arg("--");
    command
}
