//! Unit tests of `names`.

use super::*;
use crate::tidy::tree::tree;

fn complaints(files: &[(&str, &str)]) -> usize {
    check(&tree(files)).len()
}

#[test]
fn files_of_a_crate_have_no_type_of_the_same_name() {
    let other = ("crates/x/src/b.rs", "enum T {}");
    assert_eq!(complaints(&[("crates/x/src/a.rs", "struct T;"), other]), 1);
    assert_eq!(complaints(&[("crates/x/src/a/tests.rs", "struct T;"), other]), 0);
}

#[test]
fn crates_show_no_type_of_the_same_name() {
    let other = ("crates/transport-tcp/src/b.rs", "pub(crate) trait T {}");
    for (path, text, n) in [
        ("crates/x/src/a.rs", "pub struct T;", 1),
        ("crates/x/src/a.rs", "struct T;", 0),
        ("crates/transport-ucx/src/a.rs", "pub struct T;", 0),
    ] {
        assert_eq!(complaints(&[(path, text), other]), n, "{path}: {text}");
    }
}

#[test]
fn names_of_the_standard_library_are_taken() {
    assert_eq!(complaints(&[("crates/x/src/a.rs", "struct Range;")]), 1);
}
