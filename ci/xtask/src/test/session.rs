//! The state that steps share.

use std::path::PathBuf;

use task_support::workspace::Workspace;

use super::suites::Suites;

/// The state that every step may use.
pub struct TestSession {
    pub workspace: Workspace,
    /// The prefix into which the step `install` puts the release.
    pub prefix: PathBuf,
    /// The programs of tests.
    pub suites: Suites,
    /// True if tests run at all sizes.
    pub every_size: bool,
}
