//! The rule that functions get the PE on whose behalf they act, or the part of it that they use.
//!
//! The PE of the process is found by functions that anything can call, so a function that calls one
//! has an input which its signature does not show, and acts for the wrong PE in a test with
//! several. Exported calls look it up; handlers, hooks and the path of accesses have no other
//! way. All these are counted, so that no further one comes in unnoticed.

use super::tree::{File, Tree};

/// The calls that return the PE of the process, or a part of it.
const LOOKUPS: [&str; 14] = [
    "job::require(",
    "job::require_pe(",
    "job::require_or_inherited(",
    "job::known()",
    "links::require(",
    "links::known()",
    "links::of_process()",
    "own_pe::require(",
    "own_pe::known()",
    "own_pe::of_process()",
    "network::of_process()",
    "network::is_open()",
    " endpoints()",
    "contexts()",
];

/// The directories of code in which they are counted, and how many there are.
const COUNTED: [(&str, usize); 3] = [
    ("crates/pe/src/", 6),
    ("crates/communication/src/", 49),
    ("crates/runtime/src/", 53),
];

pub fn check(tree: &Tree) -> Vec<String> {
    let complaint = |(dir, allowed)| complaint(tree, dir, allowed);
    COUNTED.into_iter().filter_map(complaint).collect()
}

fn complaint(tree: &Tree, dir: &str, allowed: usize) -> Option<String> {
    let of_product = |file: &&File| {
        file.is_rust() && file.path.starts_with(dir) && !file.path.contains("/tests")
    };
    let files = tree.files.iter().filter(of_product);
    let found: usize = files.map(|file| lookups(&file.code())).sum();

    if found > allowed {
        Some(format!(
            "{dir}: {found} look-ups of the PE of the process, {allowed} are allowed; pass the PE, its links or its job to \
             the function instead"
        ))
    } else if found < allowed {
        Some(format!(
            "{dir}: {found} look-ups of the PE of the process, {allowed} are allowed; lower the number in \
             ci/xtask/src/tidy/lookups.rs"
        ))
    } else {
        None
    }
}

/// Returns the number of look-ups in code.
fn lookups(code: &str) -> usize {
    LOOKUPS.iter().map(|call| code.matches(call).count()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::tree::tree;

    #[test]
    fn look_ups_of_the_product_are_counted() {
        let tree = tree(&[
            (
                "crates/a/src/b.rs",
                "let job = job::require(call); // job::known()\nlinks::of_process().area",
            ),
            ("crates/a/src/b/tests.rs", "job::known()"),
            ("crates/other/src/b.rs", "job::known()"),
        ]);
        assert_eq!(complaint(&tree, "crates/a/src/", 2), None);
        for wrong in [1, 3] {
            let found = complaint(&tree, "crates/a/src/", wrong).expect("the number is another");
            assert!(found.starts_with("crates/a/src/: 2 look-ups"), "{found}");
        }
    }
}
