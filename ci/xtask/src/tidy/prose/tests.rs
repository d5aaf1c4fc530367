//! Unit tests of `prose`.

use super::*;
use crate::tidy::tree::tree;

fn n_complaints(path: &str, text: &str) -> usize {
    check(&tree(&[(path, text)])).len()
}

#[test]
fn comments_have_100_columns() {
    let comment = |columns: usize| format!("    // {}", "x".repeat(columns - 7));
    assert_eq!(n_complaints("crates/heap/a.rs", &comment(100)), 0);
    assert_eq!(n_complaints("crates/heap/a.rs", &comment(101)), 1);
    assert_eq!(n_complaints("docs/a.md", &comment(101)), 0);
}

#[test]
fn replaced_words_are_found_in_any_case_and_in_names() {
    let word = "whoever";
    for text in ["Whoever calls.", "fn whoever_calls() {}", "a, whoever"] {
        assert_eq!(n_complaints("docs/a.md", text), 1, "{word} in {text}");
    }
    assert_eq!(n_complaints("crates/heap/a.rs", "// so  many"), 1);
    assert_eq!(n_complaints("docs/a.md", "secure, intelligence, newsletter"), 0);
}

#[test]
fn generated_files_may_say_anything() {
    assert_eq!(n_complaints("crates/heap/a.rs", "// @generated\n// told"), 0);
}
