//! Unit tests of `manifests`.

use workbench::workspace::Package;

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
        folder: "crates/a".into(),
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
