//! Lines of Rust of each crate, without tests and generated code: lines are a cost, so each crate
//! has a budget. A commit that raises one says why in its body.

use super::tree::{File, Tree};

/// The directory of a crate, and the lines that it may have.
const BUDGETS: &[(&str, usize)] = &[
    ("benches/driver", 1_650),
    ("benches/scale", 900),
    ("benches/shmem-perf", 9_750),
    ("ci/conformance", 2_570),
    ("ci/faults", 200),
    ("ci/fuzz", 250),
    ("ci/loom", 250),
    ("ci/spec", 1_450),
    ("ci/strict-fabric", 4_250),
    ("ci/testkit", 1_150),
    ("ci/verbs", 850),
    ("ci/task-support", 600),
    ("ci/xtask", 6_250),
    ("crates/bootstrap", 5_050),
    ("crates/collectives", 2_600),
    ("crates/explain", 2_965),
    ("crates/heap", 3_000),
    ("crates/librushmem-race", 1_350),
    ("crates/log", 350),
    ("crates/race-interface", 250),
    ("crates/race", 4_250),
    ("crates/runtime", 21_150),
    ("crates/shmem-c", 2_600),
    ("crates/shmem", 5_300),
    ("crates/topology", 1_350),
    ("crates/trace", 950),
    ("crates/transport-ofi", 5_200),
    ("crates/transport-tcp", 5_500),
    ("crates/transport-ucx", 3_450),
    ("crates/transport", 10_170),
    ("launcher/charts", 250),
    ("launcher/man-pages", 200),
    ("launcher/oshrun", 7_950),
    ("launcher/shmem-info", 3_350),
    ("sys/libfabric-sys", 400),
];

/// Lines that a crate may stay below its budget; a looser budget would limit nothing.
const SLACK: usize = 150;

pub fn check(tree: &Tree) -> Vec<String> {
    compare(tree, BUDGETS)
}

fn compare(tree: &Tree, budgets: &[(&str, usize)]) -> Vec<String> {
    let mut complaints = Vec::new();
    for file in tree.files.iter().filter(|file| file.path.ends_with("/Cargo.toml")) {
        let dir = file.path.trim_end_matches("/Cargo.toml");
        let lines = lines(tree, dir);
        let Some((_, budget)) = budgets.iter().find(|(name, _)| *name == dir) else {
            if lines > SLACK {
                complaints.push(format!(
                    "{dir}: its {lines} lines of Rust have no budget in \
                     ci/xtask/src/tidy/budgets.rs"
                ));
            }
            continue;
        };
        if lines > *budget {
            complaints.push(format!(
                "{dir}: it has {lines} lines of Rust, more than its budget of {budget}; delete \
                 something, or raise the budget and say why in the commit"
            ));
        } else if lines + SLACK < *budget {
            complaints
                .push(format!("{dir}: it has {lines} lines of Rust; lower its budget of {budget}"));
        }
    }
    complaints
}

fn lines(tree: &Tree, dir: &str) -> usize {
    let is_counted = |file: &&File| {
        let inside = file.path.strip_prefix(dir).and_then(|path| path.strip_prefix('/'));
        file.is_rust()
            && !file.is_generated()
            && inside.is_some_and(|path| !path.contains("tests/") && !path.ends_with("tests.rs"))
    };
    tree.files.iter().filter(is_counted).map(|file| file.text.lines().count()).sum()
}

#[cfg(test)]
mod tests;
