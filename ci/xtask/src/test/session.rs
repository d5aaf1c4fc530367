//! What steps are given.

use std::path::PathBuf;

use task_support::workspace::Workspace;

use super::suites::Suites;

/// What every step may use.
pub struct TestSession {
    pub workspace: Workspace,
    /// Where the step `install` puts the release.
    pub prefix: PathBuf,
    /// The programs of tests.
    pub suites: Suites,
    /// True if tests run at all sizes.
    pub every_size: bool,
}
