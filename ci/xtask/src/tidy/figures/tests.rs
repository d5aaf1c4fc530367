//! Unit tests of `figures`.

use super::*;
use crate::tidy::tree::tree;

#[test]
fn figures_stand_under_performance() {
    let text = "a put\ntakes 1.9 ns here";
    assert_eq!(
        check(&tree(&[("docs/a.md", text)])),
        ["docs/a.md:2: the figure `1.9 ns` belongs to docs/performance"]
    );
    assert!(check(&tree(&[("docs/performance.md", text)])).is_empty());
}

#[test]
fn limits_and_counts_are_no_figures() {
    for text in ["within 10 s", "1,024 descriptors", "four times as long as", "2 users", "ns 3"] {
        assert_eq!(figure(text), None, "{text}");
    }
    assert_eq!(figure("that takes 1 to 2.7 times as long"), Some("2.7 times as long"));
}
