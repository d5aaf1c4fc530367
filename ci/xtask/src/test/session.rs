//! What steps are given and what they return.

use std::path::PathBuf;

use crate::workspace::Workspace;

/// What every step may use.
pub struct Session {
    /// The repository.
    pub workspace: Workspace,
    /// Where the step `install` puts the release.
    pub prefix: PathBuf,
    /// Whether long waits are fine.
    pub full: bool,
}

/// How a step ended, if not with an error.
pub enum Outcome {
    /// All of it.
    Passed,
    /// Left out, and why.
    Skipped(String),
}
