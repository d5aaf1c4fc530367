//! Unit tests of `manifests`.

use task_support::workspace::Package;

use super::*;
use crate::tidy::tree::tree;

const TOP: (&str, &str) = ("Cargo.toml", "[workspace.package]\nrust-version = \"1.2\"\n");
const README: (&str, &str) = ("README.md", "It needs Rust 1.2.");

#[test]
fn lints_are_inherited() {
    let good = ("crates/a/Cargo.toml", "[lints]\nworkspace = true\n");
    assert!(check(&tree(&[TOP, README, good])).is_empty());
    let bad = ("crates/a/Cargo.toml", "[lints]\n[other]\nworkspace = true\n");
    assert_eq!(check(&tree(&[TOP, README, bad])).len(), 1);
}

#[test]
fn the_oldest_rust_is_the_same_everywhere() {
    let mut tree = tree(&[TOP, ("README.md", "It needs Rust 1.3.")]);
    tree.packages.push(Package {
        dir: "crates/a".into(),
        rust_version: Some("1.4".into()),
        dependencies: Vec::new(),
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
fn what_is_published_has_the_licenses() {
    let lints = "[lints]\nworkspace = true\n";
    let published = format!("[package]\npublish = true\n{lints}");
    let top = [TOP, README, ("LICENSE-MIT", "mit"), ("LICENSE-APACHE", "apache")];
    let check = |files: &[(&str, &str)]| check(&tree(&[&top, files].concat()));
    assert!(check(&[("crates/a/Cargo.toml", lints)]).is_empty());
    let manifest = ("crates/a/Cargo.toml", published.as_str());
    let apache = ("crates/a/LICENSE-APACHE", "apache");
    assert!(check(&[manifest, ("crates/a/LICENSE-MIT", "mit"), apache]).is_empty());
    let complaint =
        "crates/a/LICENSE-MIT: it is published, but is not a link to LICENSE-MIT at the top";
    assert_eq!(check(&[manifest, apache]), [complaint]);
    assert_eq!(check(&[manifest, ("crates/a/LICENSE-MIT", "another"), apache]), [complaint]);
}
