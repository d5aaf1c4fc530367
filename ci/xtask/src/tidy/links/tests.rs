//! Unit tests of `links`.

use super::*;
use crate::tidy::tree::tree;

const OTHER: (&str, &str) = (
    "docs/b.md",
    "# A title: `x`, y\n```\n# no title\n```\n# Twice\n# Twice\n",
);

fn n_complaints(path: &str, text: &str) -> usize {
    check(&tree(&[(path, text), OTHER, ("crates/a/src/lib.rs", "")])).len()
}

#[test]
fn links_lead_to_files_directories_and_headings() {
    for link in [
        "b.md",
        "b.md#a-title-x-y",
        "b.md#twice-1",
        "../crates/a",
        "https://x.org/y.md",
    ] {
        assert_eq!(
            n_complaints("docs/a.md", &format!("See [it]({link}).")),
            0,
            "{link}"
        );
    }
    for link in [
        "c.md",
        "b.md#a-title",
        "b.md#no-title",
        "#x",
        "../crates/b",
        "b",
    ] {
        assert_eq!(
            n_complaints("docs/a.md", &format!("See [it]({link}).")),
            1,
            "{link}"
        );
    }
}

#[test]
fn code_holds_no_links() {
    assert_eq!(n_complaints("docs/a.md", "```c\na[i](x);\n```\n"), 0);
}

#[test]
fn pages_that_a_comment_mentions_exist() {
    assert_eq!(n_complaints("ci/a.rs", "//! See docs/b.md."), 0);
    assert_eq!(n_complaints("ci/a.rs", "//! See docs/c.md."), 1);
    assert_eq!(n_complaints("ci/a.rs", "\"(share/doc/rushmem/b.md)\""), 0);
    assert_eq!(n_complaints("ci/a.rs", "\"(share/doc/rushmem/c.md)\""), 1);
}
