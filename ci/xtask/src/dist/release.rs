//! The facts that the files of a release have in common.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use task_support::process::run;

/// The oldest C library on which the programs run, as its symbols have it.
pub const GLIBC: &str = "2.28";
/// The version of all packages.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
/// The address of the documentation for users of a package.
pub const HOMEPAGE: &str = env!("CARGO_PKG_HOMEPAGE");

/// Returns what was done with a file or directory, whose name an error has.
pub fn done<T>(result: std::io::Result<T>, path: &Path) -> Result<T> {
    result.with_context(|| format!("could not use {}", path.display()))
}

/// Removes a directory of an earlier run, and makes an empty one.
pub fn empty_dir(path: &Path) -> Result<()> {
    if path.exists() {
        done(std::fs::remove_dir_all(path), path)?;
    }
    done(std::fs::create_dir_all(path), path)
}

/// Gives all files permissions that do not depend on who makes them.
pub fn permit_all(tree: &Path) -> Result<()> {
    run(Command::new("chmod").args(["-R", "u=rwX,go=rX"]).arg(tree))
}
