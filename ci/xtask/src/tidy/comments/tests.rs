//! The rule finds comments without a subject, and no others.

use super::*;

#[test]
fn a_comment_begins_with_its_subject() {
    let file = |text: &str| File { path: "src/lib.rs".into(), text: text.into() };
    assert_eq!(headless(&file("/// What it holds.\nx: u8,")).len(), 1);
    assert_eq!(headless(&file("    // Of these, two.\n/// As [`a`].")).len(), 1);
    assert!(headless(&file("/// Returns the sum\n/// Of whatever.")).is_empty());
    assert!(headless(&file("//! Offers whole blocks.\nfn what() {}")).is_empty());
    assert!(headless(&file("/// Whatever is left.\n")).is_empty());
}
