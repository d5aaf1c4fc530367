//! The integration tests of the first tier: those that find most mistakes for their time. The unit
//! tests of all packages of users run with them.
//!
//! `cargo xtask mutants` puts faults into the code, and names a test that finds each. All of these
//! tests are in the first tier.

use task_support::workspace::Selection;

/// Some tests of a program.
pub struct Part {
    /// The directory of the package.
    pub dir: &'static str,
    /// The file or directory of the package's directory `tests`.
    pub program: &'static str,
    /// A part of the names of the tests that run.
    pub name: &'static str,
}

/// The longest begin first.
pub const FIRST: &[Part] = &[
    part(SHMEM_C, "programs", "on_node::"),
    part(SHMEM_C, "jobs", "death::"),
    part("launcher/oshrun", "sites", "start::"),
    part(SHMEM_C, "jobs", "trace::"),
    part(DETECTOR, "suite", "threads_"),
    part(SHMEM_C, "sites", "local_memory::"),
    part("crates/explain", "explained", ALL),
    part("crates/transport", "simulated", ALL),
    part("launcher/oshrun", "jobs", "ends::"),
    part("launcher/oshrun", "jobs", "streams::"),
    part("crates/shmem", "jobs", "operations::"),
    part("crates/shmem", "jobs", "collectives::"),
    part(SHMEM_C, "jobs", "a_measured_file"),
    part(SHMEM_C, "jobs", "buffers::"),
    part(DETECTOR, "suite", "get_"),
    part(DETECTOR, "suite", "timed_"),
    part(DETECTOR, "suite", "long_"),
    part("crates/transport-tcp", "conformance", "signals"),
    part("crates/transport-tcp", "conformance", "amos"),
    part("crates/locate", "files", ALL),
    part("crates/topology", "fixtures", ALL),
    part("crates/runtime", "builds", ALL),
];

const SHMEM_C: &str = "crates/shmem-c";
const DETECTOR: &str = "crates/race/detector";

/// What the names of all tests of a program have.
const ALL: &str = "";

const fn part(dir: &'static str, program: &'static str, name: &'static str) -> Part {
    Part { dir, program, name }
}

/// Returns what is built: the unit tests, except those of the tool that measures, and the programs
/// of [`FIRST`].
pub fn selection() -> Selection {
    let mut targets = vec!["--lib", "--bins"];
    for part in FIRST {
        if !targets.contains(&part.program) {
            targets.extend(["--test", part.program]);
        }
    }
    Selection {
        targets,
        without: &["shmem-perf"],
    }
}
