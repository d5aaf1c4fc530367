//! Unit tests of `distribute`.

use super::super::slots;
use super::*;

fn distributed(
    hosts: &str,
    n_pes: Option<u32>,
    per_host: Option<u32>,
    is_strict: bool,
) -> Result<String, String> {
    let hosts = super::super::list::of_option("-H", hosts).expect("hosts");
    let parts = distribute(slots::distinct(hosts), n_pes, per_host, is_strict)?;
    let shown = |part: &HostPes| format!("{}:{}-{}", part.host, part.pes.start, part.pes.end);
    Ok(parts.iter().map(shown).collect::<Vec<_>>().join(" "))
}

#[test]
fn pes_go_to_hosts_in_blocks() {
    for (hosts, n_pes, per_host, expected) in [
        ("a:4,b:4", None, None, "a:0-4 b:4-8"),
        ("a:4,b:4", Some(6), None, "a:0-4 b:4-6"),
        ("a:4,b:4", Some(3), None, "a:0-3"),
        ("a,b", None, None, "a:0-1 b:1-2"),
        ("a,b,c", Some(5), None, "a:0-2 b:2-4 c:4-5"),
        ("a,b,c", Some(2), None, "a:0-1 b:1-2"),
        ("a:2,b", Some(3), None, "a:0-2 b:2-3"),
        ("a:2,b,a:2", None, None, "a:0-4 b:4-5"),
        ("a,b,a", Some(3), None, "a:0-2 b:2-3"),
        ("a:9,b", None, Some(2), "a:0-2 b:2-4"),
        ("a,b", Some(3), Some(2), "a:0-2 b:2-3"),
    ] {
        assert_eq!(distributed(hosts, n_pes, per_host, true).as_deref(), Ok(expected), "{hosts}");
    }
}

#[test]
fn slots_of_the_user_are_a_limit_and_others_are_not() {
    let error = distributed("a:2,b:1", Some(4), None, true).expect_err("too many");
    assert!(error.starts_with("4 PEs do not fit the 3 slots"), "{error}");
    assert!(distributed("a,b", Some(5), Some(2), true).is_err());
    assert!(distributed("a:1,b:1", Some(5), Some(2), false).is_err());
    assert_eq!(distributed("a:1,b:1", Some(5), None, false).as_deref(), Ok("a:0-3 b:3-5"));
    assert!(distributed("a:4294967295,b:1", None, None, true).is_err());
}
