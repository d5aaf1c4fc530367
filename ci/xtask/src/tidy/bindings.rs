//! A rule for the bindings of C libraries: code uses each name of their lists.
//!
//! `src/names.txt` of a crate in sys/ lists what `cargo xtask bindings` takes from the library's
//! headers. The compiler does not notice an unused function, type or constant there: all are
//! public.

use std::collections::HashSet;

use super::tree::Tree;

/// The end of the path of a program that writes bindings. What its text of C defines is not used by
/// that.
const GENERATOR: &str = "-sys/src/regenerate.rs";

pub fn check(tree: &Tree) -> Vec<String> {
    let mut used = HashSet::new();
    for file in &tree.files {
        if file.is_rust() && !file.is_generated() && !file.path.ends_with(GENERATOR) {
            used.extend(words(&file.text));
        }
    }

    let mut complaints = Vec::new();
    for list in &tree.files {
        if !list.path.ends_with("-sys/src/names.txt") {
            continue;
        }
        for name in list.text.lines() {
            if !used.contains(name) {
                complaints.push(format!("{}: no code uses {name}", list.path));
            }
        }
    }
    complaints
}

/// Returns the words of a Rust file, without those of comments.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.lines().flat_map(|line| {
        let code = line.split("//").next().unwrap_or_default();
        code.split(|c: char| c != '_' && !c.is_alphanumeric())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::tree::tree;

    #[test]
    fn code_uses_each_name() {
        let names = ("sys/a-sys/src/names.txt", "a_open\nA_FLAG\n");
        let user = ("crates/b/src/lib.rs", "a.a_open(a_sys::A_FLAG); // As C.\n");
        assert!(check(&tree(&[names, user])).is_empty());
    }

    #[test]
    fn comments_bindings_and_their_generators_use_no_name() {
        let unused = [
            (
                "sys/a-sys/src/names.txt",
                "a_open\na_close\nA_FLAG\nA_MODE\n",
            ),
            (
                "sys/a-sys/src/bindings.rs",
                "// @generated\npub const A_FLAG: u32 = 1;\n",
            ),
            (
                "sys/a-sys/src/regenerate.rs",
                "const HEADER: &str = \"A_MODE\";\n",
            ),
            (
                "crates/b/src/lib.rs",
                "//! `a_open`.\na_close_all(); // a_close\n",
            ),
        ];
        assert_eq!(
            check(&tree(&unused)),
            [
                "sys/a-sys/src/names.txt: no code uses a_open",
                "sys/a-sys/src/names.txt: no code uses a_close",
                "sys/a-sys/src/names.txt: no code uses A_FLAG",
                "sys/a-sys/src/names.txt: no code uses A_MODE",
            ]
        );
    }
}
