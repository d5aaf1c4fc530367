//! The versions and the permissions that all files of a release share.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use task_support::process::run;

/// The version of the oldest C library with which the programs run.
pub const GLIBC: &str = "2.28";
/// The version of all packages.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Returns the result of an operation on a file or directory, with the path in the message of an
/// error.
pub fn with_path<T>(result: std::io::Result<T>, path: &Path) -> Result<T> {
    result.with_context(|| format!("could not use {}", path.display()))
}

/// Makes an empty directory, in place of that of an earlier run.
pub fn empty_dir(path: &Path) -> Result<()> {
    if path.exists() {
        with_path(std::fs::remove_dir_all(path), path)?;
    }
    with_path(std::fs::create_dir_all(path), path)
}

/// Gives all files permissions that do not depend on the umask of the user.
pub fn permit_all(tree: &Path) -> Result<()> {
    run(Command::new("chmod").args(["-R", "u=rwX,go=rX"]).arg(tree))
}

/// Calls `make` with the path of a file that it makes, and then gives that file the name `path`. An
/// interrupted run leaves no part of a file under this name.
pub fn make_atomically(path: &Path, make: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    // The end of the name stays: tools choose the format by it.
    let new = path.with_file_name(format!("new-{name}"));
    make(&new)?;
    with_path(std::fs::rename(&new, path), path)
}

/// Moves a file, which a tool has made beside `dir` or below it, into `dir`. Returns its path.
pub fn place(file: &Path, dir: &Path) -> Result<PathBuf> {
    let placed = dir.join(file.file_name().unwrap_or_default());
    with_path(std::fs::rename(file, &placed), &placed)?;
    Ok(placed)
}
