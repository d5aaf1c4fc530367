//! The state that steps share.

use std::path::PathBuf;

use task_support::workspace::Workspace;

use super::suites::Suites;

/// Steps that are run together.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Tier {
    /// `cargo xtask test`
    Usual,
    /// `cargo xtask test --providers`
    Providers,
    /// `cargo xtask test --full`, which has all steps of the others, and runs tests at all sizes.
    Full,
}

/// The state that every step may use.
pub struct TestSession {
    pub workspace: Workspace,
    /// The prefix into which the step `install` puts the release.
    pub prefix: PathBuf,
    /// The programs of tests.
    pub suites: Suites,
    /// The tier that was asked for.
    pub tier: Tier,
}
