//! Whole jobs.

use super::super::suite::{Launch, Suite, launch};

/// Jobs from their start to their end: init, a barrier, finalize. No program can see that of
/// itself.
pub const START: Suite = Suite {
    name: "start",
    sources: &["start", "start_large"],
    launches: &[
        launch("start_2", "start", 2),
        launch("start_16", "start", 16),
        Launch { most: 5, ..launch("start_64", "start", 64) },
        Launch { most: 2, ..launch("start_256", "start", 256) },
        launch("start_large", "start_large", 2),
        launch("launch_true", "/bin/true", 2),
    ],
    rows: include_str!("start.txt"),
    bare: "bare",
    ..Suite::EMPTY
};
