//! A package has the same features in each choice of packages that a task builds, so that it is
//! built once for all of them. Cargo unites the features that the chosen packages request, but
//! those of build scripts and of procedural macros apart from the others.

use std::collections::{BTreeMap, BTreeSet};

use task_support::process;
use task_support::workspace::{APART, Workspace};

/// The choices: those of a task, of `cargo xtask demo`, of the prefix, and of the programs that
/// must not compile.
const CHOICES: [&[&str]; 4] = [
    &["xtask"],
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

/// The packages that may be built more than once.
const SEVERAL: [&str; 2] = [
    // It has a feature of its own, which tests of both languages request.
    "rushmem",
    // The derive macro and the library request different features, and both are published.
    "digest",
];

/// Adds the sets of features with which cargo builds packages for these arguments.
fn add_built(
    sets: &mut BTreeMap<String, BTreeSet<String>>,
    workspace: &Workspace,
    arguments: &[&str],
) {
    let mut tree = workspace.cargo();
    tree.args(["tree", "--offline", "--prefix", "none"])
        .args(["--format", "{p}|{f}"])
        .args(arguments);
    let text = process::capture(&mut tree).expect("cargo knows the packages");

    // An empty line precedes each further chosen package.
    for line in text.lines().filter(|line| !line.is_empty()) {
        let line = line.trim_end_matches(" (*)");
        let (package, features) = line.split_once('|').expect("the format");
        sets.entry(package.to_owned())
            .or_default()
            .insert(features.to_owned());
    }
}

#[test]
fn one_build_serves_each_choice_of_packages() {
    let workspace = Workspace::open().expect("a checkout");
    let mut sets = BTreeMap::new();
    let tests = [
        "--edges",
        "normal,build,dev",
        "--workspace",
        "--exclude",
        APART,
    ];
    add_built(&mut sets, &workspace, &tests);
    assert!(sets.len() > 100, "{sets:?}");
    for choice in CHOICES {
        let packages = choice.iter().flat_map(|name| ["--package", name]);
        let arguments: Vec<&str> = ["--edges", "normal,build"]
            .into_iter()
            .chain(packages)
            .collect();
        add_built(&mut sets, &workspace, &arguments);
    }

    sets.retain(|package, features| {
        let may_differ = SEVERAL
            .iter()
            .any(|name| package.starts_with(&format!("{name} v")));
        features.len() > 1 && !may_differ
    });
    assert!(
        sets.is_empty(),
        "cargo builds more than once {sets:#?}; request the same features in Cargo.toml"
    );
}
