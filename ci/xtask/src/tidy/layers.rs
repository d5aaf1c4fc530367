//! The rules for imports between crates: those that lead up, and the table of the allowed ones.
//!
//! `cargo xtask codegen` draws the diagram of docs/architecture.md from the imports.

use task_support::workspace::{Dependency, Package};

use super::tree::Tree;

/// The directories at the top, from the lowest to the highest. A crate imports crates of its own
/// directory and of lower ones.
const FLOORS: [&str; 5] = ["sys", "crates", "launcher", "ci", "benches"];

/// For each crate, by its directory, the directories of the crates of this repository on which it
/// may depend. A name that ends in `*` stands for all directories that begin with it.
const MAY_IMPORT: &[(&str, &[&str])] = &[
    ("crates/system", &["crates/derive"]),
    ("crates/locate", &["crates/system"]),
    (
        "crates/explain",
        &["crates/derive", "crates/locate", "crates/system"],
    ),
    ("crates/connect", &["crates/derive"]),
    ("crates/trace", &["crates/derive"]),
    ("crates/transport", &["crates/derive", "crates/system"]),
    (
        "crates/transport-tcp",
        &[
            "crates/connect",
            "crates/derive",
            "crates/system",
            "crates/transport",
        ],
    ),
    (
        "crates/transport-ucx",
        &[
            "crates/connect",
            "crates/derive",
            "crates/system",
            "crates/transport",
            "sys/ucx-sys",
        ],
    ),
    (
        "crates/transport-ofi",
        &[
            "crates/connect",
            "crates/derive",
            "crates/system",
            "crates/transport",
            "sys/libfabric-sys",
        ],
    ),
    ("crates/providers", &["crates/transport*"]),
    (
        "crates/bootstrap",
        &[
            "crates/connect",
            "crates/derive",
            "crates/explain",
            "crates/system",
            "sys/pmix-sys",
        ],
    ),
    ("crates/topology", &["crates/derive", "sys/hwloc-sys"]),
    ("crates/heap", &["crates/derive", "crates/system"]),
    ("crates/collectives", &["crates/derive"]),
    (
        "crates/pe",
        &[
            "crates/bootstrap",
            "crates/collectives",
            "crates/derive",
            "crates/explain",
            "crates/heap",
            "crates/locate",
            "crates/system",
            "crates/topology",
            "crates/transport",
        ],
    ),
    (
        "crates/communication",
        &[
            "crates/bootstrap",
            "crates/collectives",
            "crates/derive",
            "crates/explain",
            "crates/heap",
            "crates/locate",
            "crates/pe",
            "crates/race/interface",
            "crates/system",
            "crates/trace",
            "crates/transport",
        ],
    ),
    (
        "crates/runtime",
        &[
            "crates/bootstrap",
            "crates/collectives",
            "crates/communication",
            "crates/connect",
            "crates/derive",
            "crates/explain",
            "crates/heap",
            "crates/locate",
            "crates/pe",
            "crates/system",
            "crates/topology",
            "crates/trace",
            "crates/transport",
        ],
    ),
    (
        "crates/shmem",
        &[
            "crates/system",
            "crates/derive",
            "crates/runtime",
            "crates/providers",
            "crates/shmem-c",
        ],
    ),
    ("crates/derive", &[]),
    (
        "crates/shmem-c",
        &["crates/runtime", "crates/providers", "crates/trace"],
    ),
    (
        "crates/shmem-c/librushmem",
        &["crates/runtime", "crates/providers"],
    ),
    ("crates/race/interface", &[]),
    (
        "crates/race/detector",
        &["crates/locate", "crates/race/interface", "crates/system"],
    ),
    (
        "crates/race/library",
        &[
            "crates/race/detector",
            "crates/race/interface",
            "crates/system",
        ],
    ),
    ("sys/*", &[]),
    ("launcher/charts", &[]),
    ("launcher/man-pages", &[]),
    (
        "launcher/oshrun",
        &[
            "launcher/man-pages",
            "crates/bootstrap",
            "crates/explain",
            "crates/system",
            "crates/topology",
        ],
    ),
    (
        "launcher/shmem-info",
        &[
            "launcher/charts",
            "launcher/man-pages",
            "crates/runtime",
            "crates/providers",
            "crates/collectives",
            "crates/heap",
            "crates/topology",
            "crates/trace",
            "crates/system",
            "crates/transport",
            "crates/shmem",
        ],
    ),
    (
        "benches",
        &[
            "crates/collectives",
            "crates/shmem",
            "crates/transport",
            "launcher/shmem-perf",
            "ci/task-support",
        ],
    ),
    (
        "launcher/shmem-perf",
        &[
            "launcher/charts",
            "launcher/man-pages",
            "crates/system",
            "sys/ucx-sys",
            "sys/libfabric-sys",
        ],
    ),
    ("ci/task-support", &["crates/shmem-c/spec"]),
    ("crates/shmem-c/spec", &[]),
    ("ci/xtask", &["crates/shmem-c/spec", "ci/task-support"]),
    ("ci/testkit", &[]),
    ("ci/faults", &[]),
    ("ci/conformance", &["crates/transport", "ci/testkit"]),
    ("ci/strict-fabric", &["sys/libfabric-sys"]),
    ("ci/loom", &["crates/system", "crates/transport"]),
    ("ci/interop", &["crates/shmem", "crates/shmem-c/spec"]),
];

/// The crates that tests of any crate may import, too: those that exist for tests, the tables of
/// the standard, and `crates/transport` for transports that tests define.
const TESTS_MAY_IMPORT: &[&str] = &[
    "ci/testkit",
    "crates/shmem-c/spec",
    "ci/conformance",
    "ci/strict-fabric",
    "crates/transport",
    "crates/transport-tcp",
];

/// Crates of other projects on which only some directories may depend, with the reason.
const KEPT_APART: &[(&str, &[&str], &str)] = &[(
    "tokio",
    &["launcher/*"],
    "the library must not carry a runtime of its own into programs",
)];

pub fn check(tree: &Tree) -> Vec<String> {
    tree.packages.iter().flat_map(complaints).collect()
}

fn complaints(package: &Package) -> Vec<String> {
    let dir = &package.dir;
    let Some((_, allowed)) = MAY_IMPORT.iter().find(|(name, _)| matches(name, dir)) else {
        return vec![format!(
            "{dir}: this crate is not in the table of who may import whom"
        )];
    };
    let dependencies = package.dependencies.iter();
    dependencies
        .filter_map(|dependency| complaint(dir, allowed, dependency))
        .collect()
}

fn complaint(dir: &str, allowed: &[&str], dependency: &Dependency) -> Option<String> {
    if let Some(target) = &dependency.dir {
        let mut names = allowed.to_vec();
        if dependency.dev {
            names.extend(TESTS_MAY_IMPORT);
        }
        if !names.iter().any(|name| matches(name, target)) {
            return Some(format!("{dir}: it may not import {target}"));
        }
        if !dependency.dev && floor(target) > floor(dir) {
            return Some(format!(
                "{dir}: it may not import {target}, which lies above it ({})",
                FLOORS.join(" < ")
            ));
        }
        return None;
    }

    // Tests may import anything of other projects.
    if dependency.dev {
        return None;
    }
    for (name, dirs, why) in KEPT_APART {
        if *name == dependency.name && !dirs.iter().any(|name| matches(name, dir)) {
            return Some(format!("{dir}: it may not import {name}: {why}"));
        }
    }
    None
}

/// Returns the place of the directory at the top in [`FLOORS`]; `None`, which is lower than all, if
/// it is not there.
fn floor(dir: &str) -> Option<usize> {
    let top = dir.split('/').next().unwrap_or_default();
    FLOORS.iter().position(|name| *name == top)
}

/// Returns true if a name of the tables stands for this directory.
fn matches(name: &str, dir: &str) -> bool {
    match name.strip_suffix('*') {
        Some(start) => dir.starts_with(start),
        None => dir == name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(dir: &str, name: &str, target: Option<&str>, dev: bool) -> Vec<String> {
        complaints(&Package {
            name: dir.to_owned(),
            set: task_support::workspace::Packages::Users,
            dir: dir.into(),
            rust_version: None,
            dependencies: vec![Dependency {
                name: name.into(),
                dir: target.map(str::to_owned),
                dev,
            }],
            has_unit_tests: false,
        })
    }

    #[test]
    fn the_table_decides() {
        assert!(found("crates/runtime", "heap", Some("crates/heap"), false).is_empty());
        assert_eq!(
            found("crates/runtime", "tcp", Some("crates/transport-tcp"), false),
            ["crates/runtime: it may not import crates/transport-tcp"]
        );
        assert!(
            found(
                "crates/providers",
                "tcp",
                Some("crates/transport-tcp"),
                false
            )
            .is_empty()
        );
        assert_eq!(
            found("crates/heap", "runtime", Some("crates/runtime"), true).len(),
            1
        );
    }

    #[test]
    fn no_import_leads_up_even_if_the_table_allows_it() {
        let found = |dir: &str, target: &str, dev| {
            let dependency = Dependency {
                name: "other".into(),
                dir: Some(target.to_owned()),
                dev,
            };
            complaint(dir, &[target], &dependency)
        };
        assert_eq!(
            found("launcher/oshrun", "ci/xtask", false).as_deref(),
            Some(
                "launcher/oshrun: it may not import ci/xtask, which lies above it \
                 (sys < crates < launcher < ci < benches)"
            )
        );
        assert!(found("ci/xtask", "benches", false).is_some());
        assert!(found("sys/ucx-sys", "crates/system", false).is_some());
        assert!(found("benches", "ci/xtask", false).is_none());
        assert!(found("launcher/oshrun", "launcher/charts", false).is_none());
        assert!(found("launcher/oshrun", "ci/testkit", true).is_none());
    }

    #[test]
    fn a_crate_outside_the_table_is_refused() {
        assert_eq!(found("crates/extra", "libc", None, false).len(), 1);
    }

    #[test]
    fn tests_alone_import_the_test_kit() {
        assert!(found("crates/heap", "testkit", Some("ci/testkit"), true).is_empty());
        assert_eq!(
            found("crates/heap", "testkit", Some("ci/testkit"), false).len(),
            1
        );
    }

    #[test]
    fn tokio_stays_in_the_launcher() {
        assert!(found("launcher/oshrun", "tokio", None, false).is_empty());
        assert_eq!(found("crates/bootstrap", "tokio", None, false).len(), 1);
    }
}
