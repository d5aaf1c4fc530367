//! Rules for manifests: each Cargo.toml inherits the workspace's lints, the oldest supported Rust
//! is the same everywhere, published packages contain the licenses, no tests, and a description of
//! their own, and require each other's exact version, since they are parts of one program. Where a
//! manifest says that cargo makes no test program of the sources, they have no tests.
//!
//! A crate that `rushmem` needs has `publish = true`, links to both licenses next to its manifest,
//! `exclude = ["/tests"]` if it has some, and its exact version among the dependencies of the
//! workspace. If it decides what PEs do together, its digest `SOURCES`, by
//! `rushmem_derive::digest_of_sources!`, is among those of `crates/runtime/src/build.rs`.

use super::tree::{File, Tree};

/// Files whose text must name the oldest supported Rust, as `Rust 1.2`.
const STATE_THE_RUST: &[&str] = &["README.md"];

/// The names of the license files at the top, to which each published package has links.
const LICENSES: [&str; 2] = ["LICENSE-MIT", "LICENSE-APACHE"];

pub fn check(tree: &Tree) -> Vec<String> {
    let mut complaints = without_licenses(tree);
    complaints.extend(not_ready_to_publish(tree));
    complaints.extend(tests_that_never_run(tree));
    for file in &tree.files {
        if file.path.ends_with("/Cargo.toml") && !inherits_lints(&file.text) {
            complaints.push(format!(
                "{}: it does not inherit the workspace's lints ([lints] workspace = true)",
                file.path
            ));
        }
    }

    let workspace = tree.text("Cargo.toml").unwrap_or_default();
    complaints.extend(inexact_versions(workspace));
    let Some(stated) = rust_version(workspace) else {
        complaints.push("Cargo.toml: the workspace states no rust-version".into());
        return complaints;
    };
    for package in &tree.packages {
        if package.rust_version.as_deref() != Some(stated) {
            complaints.push(format!(
                "{}/Cargo.toml: its rust-version is not the workspace's {stated}",
                package.dir
            ));
        }
    }

    let phrase = format!("Rust {stated}");
    for name in STATE_THE_RUST {
        if !tree.text(name).is_some_and(|text| text.contains(&phrase)) {
            complaints.push(format!("{name}: it does not say `{phrase}`"));
        }
    }
    complaints
}

/// Returns the directory and the manifest of each published package.
fn published(tree: &Tree) -> impl Iterator<Item = (&str, &File)> {
    let manifests = tree.files.iter().filter_map(|file| {
        let dir = file.path.strip_suffix("/Cargo.toml")?;
        Some((dir, file))
    });
    manifests.filter(|(_, file)| file.text.contains("\npublish = true\n"))
}

/// Returns a complaint for each license that a published package does not contain.
fn without_licenses(tree: &Tree) -> Vec<String> {
    let mut complaints = Vec::new();
    for (dir, _) in published(tree) {
        for name in LICENSES {
            // A link has the text of the file that it leads to.
            let path = format!("{dir}/{name}");
            let found = tree.text(&path);
            if found.is_none() || found != tree.text(name) {
                complaints.push(format!(
                    "{path}: it is published, but is not a link to {name} at the top"
                ));
            }
        }
    }
    complaints
}

/// Returns a complaint for each published package that inherits its description, or contains its
/// tests, which need more than the package.
fn not_ready_to_publish(tree: &Tree) -> Vec<String> {
    let mut complaints = Vec::new();
    for (dir, file) in published(tree) {
        let path = &file.path;
        if file.text.contains("description.workspace") {
            complaints.push(format!(
                "{path}: it is published, but has no description of its own"
            ));
        }
        let tests = format!("{dir}/tests/");
        let has_tests = tree.files.iter().any(|file| file.path.starts_with(&tests));
        if has_tests && !file.text.contains("\nexclude = [\"/tests\"]\n") {
            complaints.push(format!(
                "{path}: it is published, but does not exclude its tests"
            ));
        }
    }
    complaints
}

/// Returns a complaint for each source with tests in a package whose manifest says `test = false`.
fn tests_that_never_run(tree: &Tree) -> Vec<String> {
    let mut complaints = Vec::new();
    for manifest in &tree.files {
        let Some(dir) = manifest.path.strip_suffix("/Cargo.toml") else {
            continue;
        };
        if !manifest.text.contains("\ntest = false\n") {
            continue;
        }

        let sources = format!("{dir}/src/");
        for file in &tree.files {
            if file.path.starts_with(&sources) && file.text.contains("#[test]") {
                let path = &file.path;
                complaints.push(format!(
                    "{path}: its tests never run, since {dir}/Cargo.toml says `test = false`"
                ));
            }
        }
    }
    complaints
}

/// Returns a complaint for each dependency of the workspace on a package of its own whose version
/// another release would satisfy, too.
fn inexact_versions(workspace: &str) -> Vec<String> {
    let mut complaints = Vec::new();
    for line in workspace.lines() {
        let is_own = line.contains("path = ") && line.contains("version = ");
        if is_own && !line.contains("version = \"=") {
            let name = line.split(' ').next().unwrap_or_default();
            complaints.push(format!(
                "Cargo.toml: the version of {name} is not an exact one (=)"
            ));
        }
    }
    complaints
}

/// Returns true if the section `[lints]` says `workspace = true`.
fn inherits_lints(manifest: &str) -> bool {
    manifest
        .lines()
        .map(str::trim)
        .skip_while(|line| *line != "[lints]")
        .skip(1)
        .take_while(|line| !line.starts_with('['))
        .any(|line| line.replace(' ', "") == "workspace=true")
}

fn rust_version(manifest: &str) -> Option<&str> {
    let (_, value) = manifest
        .lines()
        .filter_map(|line| line.split_once('='))
        .find(|(key, _)| key.trim() == "rust-version")?;
    Some(value.trim().trim_matches('"'))
}

#[cfg(test)]
mod tests {
    use task_support::workspace::Package;

    use super::*;
    use crate::tidy::tree::tree;

    const TOP: (&str, &str) = (
        "Cargo.toml",
        "[workspace.package]\nrust-version = \"1.2\"\n",
    );
    const README: (&str, &str) = ("README.md", "It needs Rust 1.2.");

    #[test]
    fn lints_are_inherited() {
        let good = ("crates/a/Cargo.toml", "[lints]\nworkspace = true\n");
        assert!(check(&tree(&[TOP, README, good])).is_empty());
        let bad = (
            "crates/a/Cargo.toml",
            "[lints]\n[other]\nworkspace = true\n",
        );
        assert_eq!(check(&tree(&[TOP, README, bad])).len(), 1);
    }

    #[test]
    fn the_oldest_rust_is_the_same_everywhere() {
        let mut tree = tree(&[TOP, ("README.md", "It needs Rust 1.3.")]);
        tree.packages.push(Package {
            name: "one".to_owned(),
            set: task_support::workspace::Packages::Users,
            dir: "crates/a".into(),
            rust_version: Some("1.4".into()),
            dependencies: Vec::new(),
            has_unit_tests: false,
        });
        assert_eq!(
            check(&tree),
            [
                "crates/a/Cargo.toml: its rust-version is not the workspace's 1.2",
                "README.md: it does not say `Rust 1.2`"
            ]
        );
    }

    #[test]
    fn what_is_published_has_a_description_and_no_tests() {
        let manifest = |more: &str| format!("[package]\n{more}\npublish = true\n");
        let good = manifest("description = \"a\"\nexclude = [\"/tests\"]");
        let bad = manifest("description.workspace = true");
        let test = ("crates/a/tests/a.rs", "//! A test.");
        let check = |manifest: &str| {
            not_ready_to_publish(&tree(&[("crates/a/Cargo.toml", manifest), test]))
        };
        assert!(check(&good.replace("\npublish", "\n\npublish")).is_empty());
        assert_eq!(
            check(&bad),
            [
                "crates/a/Cargo.toml: it is published, but has no description of its own",
                "crates/a/Cargo.toml: it is published, but does not exclude its tests"
            ]
        );
    }

    #[test]
    fn a_test_runs() {
        let test = ("a/src/b.rs", "#[test]\nfn b() {}\n");
        let without = ("a/Cargo.toml", "[lib]\ndoctest = false\n");
        assert!(tests_that_never_run(&tree(&[without, test])).is_empty());
        let with = ("a/Cargo.toml", "[lib]\ntest = false\n");
        let in_tests = ("a/tests/b.rs", test.1);
        assert!(tests_that_never_run(&tree(&[with, in_tests])).is_empty());
        assert_eq!(
            tests_that_never_run(&tree(&[with, test])),
            ["a/src/b.rs: its tests never run, since a/Cargo.toml says `test = false`"]
        );
    }

    #[test]
    fn packages_require_the_exact_version_of_each_other() {
        let workspace = "a = { path = \"a\", version = \"=1.2\" }\nb = { path = \"b\" }\n\
             c = { path = \"c\", version = \"1.2\" }\nd = { version = \"1.2\" }\n";
        assert_eq!(
            inexact_versions(workspace),
            ["Cargo.toml: the version of c is not an exact one (=)"]
        );
    }

    #[test]
    fn what_is_published_has_the_licenses() {
        let lints = "[lints]\nworkspace = true\n";
        let published = format!("[package]\npublish = true\n{lints}");
        let top = [
            TOP,
            README,
            ("LICENSE-MIT", "mit"),
            ("LICENSE-APACHE", "apache"),
        ];
        let check = |files: &[(&str, &str)]| check(&tree(&[&top, files].concat()));
        assert!(check(&[("crates/a/Cargo.toml", lints)]).is_empty());
        let manifest = ("crates/a/Cargo.toml", published.as_str());
        let apache = ("crates/a/LICENSE-APACHE", "apache");
        assert!(check(&[manifest, ("crates/a/LICENSE-MIT", "mit"), apache]).is_empty());
        let complaint =
            "crates/a/LICENSE-MIT: it is published, but is not a link to LICENSE-MIT at the top";
        assert_eq!(check(&[manifest, apache]), [complaint]);
        assert_eq!(
            check(&[manifest, ("crates/a/LICENSE-MIT", "another"), apache]),
            [complaint]
        );
    }
}
