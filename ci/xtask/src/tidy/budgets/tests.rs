//! Crates of known length, compared with budgets.

use super::super::tree::tree;
use super::compare;

#[test]
fn a_crate_has_between_its_budget_and_a_little_less() {
    let thousand = "line\n".repeat(1_000);
    let tree = tree(&[
        ("crates/a/Cargo.toml", ""),
        ("crates/a/src/lib.rs", &thousand),
        ("crates/a/src/lib/tests.rs", &thousand),
        ("crates/a/tests/whole.rs", &thousand),
        ("crates/a/src/bindings.rs", "// @generated\n"),
        ("crates/ab/src/lib.rs", &thousand),
    ]);
    assert_eq!(compare(&tree, &[("crates/a", 1_000)]), [""; 0]);
    assert_eq!(compare(&tree, &[("crates/a", 1_150)]), [""; 0]);
    let complaint = |budget| compare(&tree, &[("crates/a", budget)]).remove(0);
    assert!(complaint(999).contains("1000 lines of Rust, more than its budget of 999"));
    assert!(complaint(1_151).ends_with("lower its budget of 1151"));
    assert!(compare(&tree, &[]).remove(0).contains("no budget"));
}
