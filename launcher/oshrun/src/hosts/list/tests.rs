//! Unit tests of `list`.

use super::*;

fn hosts(list: &[(&str, Option<u32>)]) -> Vec<HostSlots> {
    list.iter().map(|(name, slots)| HostSlots { name: name.to_string(), slots: *slots }).collect()
}

#[test]
fn hosts_of_the_option() {
    let list = of_option("-H", "a:4, me@b,[::1]:2,fe80::1,10.0.0.1:3").expect("hosts");
    let expected = [
        ("a", Some(4)),
        ("me@b", None),
        ("::1", Some(2)),
        ("fe80::1", None),
        ("10.0.0.1", Some(3)),
    ];
    assert_eq!(list, hosts(&expected));
    for (text, words) in [
        ("", "\"\" is not a host name"),
        ("a,,b", "\"\" is not a host name"),
        ("a:0", "\"0\" is not a number of PEs"),
        ("a:x", "\"x\" is not a number of PEs"),
        ("-oProxyCommand=x", "is not a host name"),
        (":4", "is not a host name"),
    ] {
        let error = of_option("-H", text).expect_err(text);
        assert!(error.contains(words), "{text}: {error}");
    }
}

#[test]
fn hosts_of_a_file() {
    let text = "# ours\na\n\n b:4  # fast\nc slots=2\n";
    let expected = [("a", None), ("b", Some(4)), ("c", Some(2))];
    assert_eq!(of_file("f", text), Ok(hosts(&expected)));
    for (text, error) in [
        ("# none\n", "f lists no host"),
        ("a\nb max_slots=3", "f, line 2: max_slots=3 is not understood"),
        ("b:3 slots=3", "f, line 1: slots=3 is not understood"),
        ("b slots=0", "f, line 1: \"0\" is not a number of PEs"),
    ] {
        assert!(of_file("f", text).expect_err(text).starts_with(error), "{text}");
    }
}
