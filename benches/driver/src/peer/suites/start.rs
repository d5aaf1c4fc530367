//! Whole jobs.

use super::super::suite::{Launch, Suite, alone, launch};
use super::super::table::{Aim, Unit};

/// Jobs from their start to their end: init, a barrier, finalize. No program can see that of itself.
pub const START: Suite = Suite {
    name: "start",
    sources: &["start", "start_large"],
    programs: &[],
    measured: &[],
    launches: &[
        launch("start_2", "start", 2),
        launch("start_16", "start", 16),
        Launch { most: 5, ..launch("start_64", "start", 64) },
        Launch { most: 2, ..launch("start_256", "start", 256) },
        launch("start_large", "start_large", 2),
        launch("launch_true", "/bin/true", 2),
    ],
    costs: &[],
    carrier: None,
    environment: &[],
    rows: &[
        alone("start_2", "2 PEs", Unit::Time, &[Aim::OfTheirs(0.1)]),
        alone("start_16", "16 PEs", Unit::Time, &[Aim::OfTheirs(0.2)]),
        alone("start_64", "64 PEs", Unit::Time, &[Aim::OfTheirs(0.15)]),
        alone("start_256", "256 PEs", Unit::Time, &[Aim::OfTheirs(0.05)]),
        alone("start_large", "2 PEs with 4 GiB of .bss", Unit::Time, &[]),
        alone("launch_true", "oshrun -n 2 /bin/true", Unit::Time, &[]),
    ],
    bare: "bare",
};
