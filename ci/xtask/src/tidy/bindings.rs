//! A rule for the bindings of C libraries: code uses each name of their lists.
//!
//! `src/names.txt` of a crate in sys/ lists what `cargo xtask bindings` takes from the library's
//! headers. The compiler does not notice an unused function, type, constant or entry of a table
//! there: all are public.

use std::collections::HashSet;

use super::tree::Tree;

/// The program that makes bindings. What its text of C defines is not used by that.
const GENERATOR: &str = "ci/xtask/src/bindings/generator.rs";

pub fn check(tree: &Tree) -> Vec<String> {
    let code = tree
        .files
        .iter()
        .filter(|file| file.is_rust() && !file.is_generated() && file.path != GENERATOR);
    let code: Vec<&str> = code.map(|file| file.text.as_str()).collect();
    let used: HashSet<&str> = code.iter().copied().flat_map(words).collect();

    let mut complaints = Vec::new();
    for list in &tree.files {
        if !list.path.ends_with("-sys/src/names.txt") {
            continue;
        }
        for name in list.text.lines() {
            let is_used = match name.split_once("::") {
                Some((_, entry)) => code.iter().any(|text| uses_entry(text, entry)),
                None => used.contains(name),
            };
            if !is_used {
                complaints.push(format!("{}: no code uses {name}", list.path));
            }
        }
    }
    complaints
}

/// Returns true if code calls an entry of a table of functions, or fills it in. A table that leaves
/// it empty says `None`.
fn uses_entry(text: &str, entry: &str) -> bool {
    text.contains(&format!(").{entry}.expect(")) || text.contains(&format!(" {entry}: Some("))
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
    fn code_calls_or_fills_in_each_entry() {
        let names = (
            "sys/a-sys/src/names.txt",
            "ops::bind\nops::close\nops::open\n",
        );
        let user = (
            "crates/b/src/lib.rs",
            "(*(*a).ops).close.expect(FILLED)(a);\nops {\n    bind: Some(bind),\n    open: None,\n};\n",
        );
        assert_eq!(
            check(&tree(&[names, user])),
            ["sys/a-sys/src/names.txt: no code uses ops::open"]
        );
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
                "ci/xtask/src/bindings/generator.rs",
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
