//! Unit tests of `layers`.

use super::*;

fn found(dir: &str, name: &str, target: Option<&str>, dev: bool) -> Vec<String> {
    complaints(&Package {
        dir: dir.into(),
        rust_version: None,
        dependencies: vec![Dependency { name: name.into(), dir: target.map(str::to_owned), dev }],
    })
}

#[test]
fn the_table_decides() {
    assert!(found("crates/runtime", "heap", Some("crates/heap"), false).is_empty());
    assert_eq!(
        found("crates/runtime", "tcp", Some("crates/transport-tcp"), false),
        ["crates/runtime: it may not import crates/transport-tcp"]
    );
    assert!(found("crates/providers", "tcp", Some("crates/transport-tcp"), false).is_empty());
    assert_eq!(found("crates/heap", "runtime", Some("crates/runtime"), true).len(), 1);
}

#[test]
fn a_crate_outside_the_table_is_refused() {
    assert_eq!(found("crates/extra", "libc", None, false).len(), 1);
}

#[test]
fn tests_alone_import_the_test_kit() {
    assert!(found("crates/heap", "testkit", Some("ci/testkit"), true).is_empty());
    assert_eq!(found("crates/heap", "testkit", Some("ci/testkit"), false).len(), 1);
}

#[test]
fn tokio_stays_in_the_launcher() {
    assert!(found("launcher/oshrun", "tokio", None, false).is_empty());
    assert_eq!(found("crates/bootstrap", "tokio", None, false).len(), 1);
}
