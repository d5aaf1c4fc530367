//! Unit tests of `imports`.

use super::super::tree::tree;
use super::check;

fn complaints(files: &[(&str, &str)]) -> Vec<String> {
    check(&tree(files))
}

#[test]
fn a_circle_is_found_however_it_is_closed() {
    let lib = ("crates/x/src/lib.rs", "mod a; mod b; pub use a::A;");
    let a = ("crates/x/src/a.rs", "use crate::b::B; pub struct A;");
    let circle = "crates/x/src: these files import each other: a.rs, b.rs";
    for b in [
        "use crate::a::A;",
        "fn f() { crate::a::g() }",
        "use crate::A;",
        "use super::a; fn f() { a::g() }",
    ] {
        assert_eq!(complaints(&[lib, a, ("crates/x/src/b.rs", b)]), [circle], "{b}");
    }
    for b in ["pub struct B;", "#[cfg(test)] mod tests { use crate::a::A; }", "use other::a::A;"] {
        assert!(complaints(&[lib, a, ("crates/x/src/b.rs", b)]).is_empty(), "{b}");
    }
}

#[test]
fn a_circle_by_way_of_all_names_of_a_module_is_found() {
    let all = "mod a; mod b; mod c; pub use c::*;";
    let lib = ("crates/x/src/lib.rs", all);
    let c = ("crates/x/src/c.rs", "pub use crate::a::*; pub fn other() {}");
    let a = ("crates/x/src/a.rs", "use crate::b::B; pub const A: u32 = 1;");
    for b in ["use crate::A; pub struct B;", "pub struct B; fn f() { crate::c::A }"] {
        let found = complaints(&[lib, a, ("crates/x/src/b.rs", b), c]);
        assert_eq!(found, ["crates/x/src: these files import each other: a.rs, b.rs"], "{b}");
    }
    let b = ("crates/x/src/b.rs", "use crate::other; pub struct B;");
    assert_eq!(complaints(&[lib, ("crates/x/src/a.rs", "pub struct A;"), b, c]), [""; 0]);
}

#[test]
fn a_parent_and_its_child_are_files_too() {
    let parent = ("crates/x/src/a/mod.rs", "mod b; use b::B; pub struct A;");
    let child = ("crates/x/src/a/b.rs", "use super::A; pub struct B;");
    assert_eq!(complaints(&[parent, child]).len(), 1);
    let alone = ("crates/x/src/a/mod.rs", "mod b; pub struct A;");
    assert!(complaints(&[alone, child]).is_empty());
}

#[test]
fn layers_import_downwards() {
    let files = [
        ("crates/runtime/src/call/a.rs", "use crate::net::b;"),
        ("crates/runtime/src/net/b.rs", ""),
    ];
    assert_eq!(complaints(&files).len(), 1);
    let files = [
        ("crates/runtime/src/call/a.rs", ""),
        ("crates/runtime/src/net/b.rs", "use crate::call::a;"),
    ];
    assert!(complaints(&files).is_empty());
}
