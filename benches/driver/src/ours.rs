//! The directory of our own programs that take part: the one that the caller names, or that of a
//! fresh installation.

use std::path::{Path, PathBuf};

use anyhow::Result;
use task_support::workspace::{Install, Workspace};

/// `named`, or the release built and installed below `dir`.
pub fn bin(
    named: Option<PathBuf>,
    workspace: &Workspace,
    dir: &Path,
    install: Install,
) -> Result<PathBuf> {
    if let Some(bin) = named {
        return Ok(bin);
    }
    let prefix = dir.join("prefix");
    install(workspace, &prefix)?;
    Ok(prefix.join("bin"))
}
