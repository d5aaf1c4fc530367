//! A package has the same features in each choice of packages that a task builds, so that it is
//! built once for all of them. Cargo unites the features that the chosen packages request.

use std::collections::BTreeSet;

use task_support::process;
use task_support::workspace::{APART, Workspace};

/// The choices: those of `cargo xtask demo`, of the prefix, and of the programs that must not
/// compile.
const CHOICES: [&[&str]; 3] = [
    &["librushmem", "oshrun"],
    &[
        "librushmem",
        "librushmem-race",
        "oshrun",
        "shmem-info",
        "shmem-perf",
    ],
    &["rushmem"],
];

/// Returns the packages that cargo builds for these arguments, each with its features.
fn built(workspace: &Workspace, edges: &str, arguments: &[&str]) -> BTreeSet<String> {
    let mut tree = workspace.cargo();
    tree.args([
        "tree",
        "--offline",
        "--prefix",
        "none",
        "--format",
        "{p} {f}",
    ])
    .args(["--edges", edges])
    .args(arguments);
    let text = process::capture(&mut tree).expect("cargo knows the packages");
    text.lines()
        .map(|line| line.trim_end_matches(" (*)").to_owned())
        // The Rust interface has a feature of its own, which tests of both languages request.
        .filter(|line| !line.starts_with("rushmem v"))
        .collect()
}

#[test]
fn one_build_serves_each_choice_of_packages() {
    let workspace = Workspace::open().expect("a checkout");
    let of_tests = ["--workspace", "--exclude", APART];
    let tests = built(&workspace, "normal,build,dev", &of_tests);
    assert!(tests.len() > 100, "{tests:?}");

    for choice in CHOICES {
        let packages: Vec<&str> = choice.iter().flat_map(|name| ["--package", name]).collect();
        let chosen = built(&workspace, "normal,build", &packages);
        let again: Vec<&String> = chosen.difference(&tests).collect();
        assert!(
            again.is_empty(),
            "for {choice:?} cargo builds once more {again:?}; request the same features in Cargo.toml"
        );
    }
}
