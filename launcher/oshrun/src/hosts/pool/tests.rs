//! Unit tests of `pool`.

use super::*;
use crate::hosts::{HostOptions, find};

fn pool(list: &str, spare: &str, n_pes: Option<u32>) -> Result<HostPool, StartFailure> {
    let (list, spare) = (Some(list.to_string()), Some(spare.to_string()));
    find(&HostOptions { list, spare, ..HostOptions::default() }, n_pes)
}

fn shown(pool: &mut HostPool) -> String {
    match pool.distribute() {
        Ok(Hosts { parts, .. }) => {
            let shown = parts.iter().map(|part| format!("{}:{}", part.host, part.pes.end));
            shown.collect::<Vec<_>>().join(" ")
        }
        Err(failure) => failure.sentence,
    }
}

#[test]
fn spare_hosts_replace_lost_ones_and_the_others_keep_their_pes() {
    for (list, spare, n_pes, lost, used, expected) in [
        ("a:2,b:2,c:2", "d", None, "b", "d", "a:2 d:4 c:6"),
        ("a:2,b:2,c:2", "1", None, "a", "c", "c:2 b:4"),
        ("a:2,b:2,c:2", "2", Some(2), "a", "b", "b:2"),
        ("a:2,b:1,c:2,b:1", "1", None, "b", "c", "a:2 c:4"),
        ("a,b", "c,d", Some(5), "a b", "c d", "c:3 d:5"),
        ("a:4,b:4", "c:2,d:1,e:2", None, "b", "c d e", "a:4 c:6 d:7 e:8"),
        ("a,b,c", "0", None, "c", "", "a:2 b:3"),
        ("a:2,b:2,c:2", "0", Some(4), "a", "", "b:2 c:4"),
        ("a:2,b:2", "0", None, "b", "", "4 PEs do not fit the 2 slots of the hosts; give"),
        ("a,b", "0", None, "a b", "", "no host is left"),
    ] {
        let mut pool = pool(list, spare, n_pes).expect(list);
        shown(&mut pool);
        let lost = lost.split(' ').map(String::from).collect();
        assert_eq!(pool.replace(&lost).join(" "), used, "{list} {spare}");
        let shown = shown(&mut pool);
        assert!(shown.starts_with(expected), "{list} {spare}: {shown}");
    }
}

#[test]
fn a_lost_host_is_no_spare_one() {
    let mut pool = pool("a,b", "c,c,d", None).expect("others");
    shown(&mut pool);
    for (lost, used) in [("a", "c"), ("c", "d"), ("d", "")] {
        assert_eq!(pool.replace(&BTreeSet::from([lost.to_string()])).join(" "), used, "{lost}");
    }
    assert_eq!(shown(&mut pool), "b:2");
}

#[test]
fn spare_hosts_are_others() {
    let refused = |list, spare| pool(list, spare, None).expect_err(spare).sentence;
    assert_eq!(refused("a,b", "2"), "--spare 2 leaves none of 2 hosts for the PEs");
    assert_eq!(refused("a,b", "c,b"), "--spare: the job already starts on host b");
    assert_eq!(refused("a,b", "c:x"), "--spare c:x: \"x\" is not a number of PEs");
}
