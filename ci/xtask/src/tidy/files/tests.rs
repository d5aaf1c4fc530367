//! Unit tests of `files`.

use super::*;
use crate::tidy::tree::tree;

#[test]
fn only_known_names_lie_at_the_top() {
    let tree = tree(&[
        (".ci/run", ""),
        ("README.md", ""),
        ("notes/a.txt", ""),
        ("notes/b.txt", ""),
    ]);
    assert_eq!(
        check(&tree),
        ["notes: it does not belong at the top of the repository"]
    );
}

#[test]
fn conflicts_of_merges_are_found() {
    assert_eq!(
        check(&tree(&[("docs/a.md", "a\n<<<<<<< HEAD\nb\n")])).len(),
        1
    );
}

#[test]
fn a_rust_file_begins_with_its_reason() {
    assert!(check(&tree(&[("ci/a.rs", "//! Why.\n")])).is_empty());
    assert_eq!(check(&tree(&[("ci/a.rs", "fn main() {}\n")])).len(), 1);
    assert!(check(&tree(&[("ci/a.rs", "// @generated\nfn main() {}\n")])).is_empty());
}

#[test]
fn the_length_of_a_rust_file_is_limited() {
    let text = format!("//! Why.\n{}", "\n".repeat(LONGEST - 1));
    assert!(check(&tree(&[("ci/a.rs", &text)])).is_empty());
    assert_eq!(check(&tree(&[("ci/a.rs", &(text + "\n"))])).len(), 1);
}

#[test]
fn the_width_of_a_comment_is_limited() {
    let text = format!("//! Why.\n    // §{}", "x".repeat(WIDEST - 8));
    assert!(check(&tree(&[("ci/a.rs", &text)])).is_empty());
    assert_eq!(check(&tree(&[("ci/a.rs", &(text + "x"))])).len(), 1);
}

#[test]
fn a_file_with_unsafe_code_says_so_itself() {
    let said = "//! Why.\n#![allow(unsafe_code)]\n";
    let some = "unsafe { read() };\n";
    let n_complaints = |path, text: &str| check(&tree(&[(path, text)])).len();
    assert_eq!(
        n_complaints("ci/a.rs", &format!("//! Why.\nlet x = {some}")),
        1
    );
    assert_eq!(n_complaints("ci/a.rs", said), 1);
    assert_eq!(n_complaints("ci/a.rs", &format!("{said}let x = {some}")), 0);
    assert_eq!(n_complaints("ci/a.rs", &format!("//! Why.\n// {some}")), 0);
}

#[test]
fn paths_of_one_machine_are_found() {
    let path = concat!("see /", "work/main");
    assert_eq!(check(&tree(&[("docs/a.md", path)])).len(), 1);
    let dir = concat!("frame/", "work/main and the~/", "work/x");
    assert!(check(&tree(&[("docs/a.md", dir)])).is_empty());
}
