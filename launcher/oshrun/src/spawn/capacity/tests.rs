//! Unit tests of `capacity`.

use super::*;

fn bound(resource: Resource, source: &str, limit: u64, used: u64) -> ResourceLimit {
    ResourceLimit { resource, source: source.to_string(), limit, used, remedy: "start fewer PEs" }
}

#[test]
fn pes_and_the_processes_that_start_them_count() {
    assert_eq!(needed(1), (4, 256 * 1024));
    assert_eq!(needed(256).0, 259);
    assert_eq!(needed(u32::MAX).1, u64::from(u32::MAX) << 18);
}

#[test]
fn the_tightest_bound_is_named_with_values_and_remedy() {
    let bounds = [
        bound(Resource::Tasks, "a", 1000, 900),
        bound(Resource::Tasks, "b", 300, 250),
        bound(Resource::Memory, "c", 1 << 40, 0),
    ];
    let refused = |n_pes| refusal(n_pes, needed(n_pes), &bounds);
    assert_eq!(refused(47), None);
    let sentence = "48 PEs on this host need at least 51 processes and threads, but b leaves room for 50 (limit 300, \
                    in use 250): start fewer PEs";
    assert_eq!(refused(48).as_deref(), Some(sentence));
}

#[test]
fn memory_is_counted_in_mebibytes() {
    let bounds = [bound(Resource::Memory, "c", 30 << 20, 20 << 20)];
    assert_eq!(refusal(40, needed(40), &bounds), None);
    let sentence = "48 PEs on this host need at least 12 MiB of memory, but c leaves room for 10 MiB (limit 30 MiB, in \
                    use 20 MiB): start fewer PEs";
    assert_eq!(refusal(48, needed(48), &bounds).as_deref(), Some(sentence));
    let full = [bound(Resource::Memory, "c", 1, 2)];
    assert!(refusal(1, needed(1), &full).is_some());
}

#[test]
fn this_host_has_room_for_one_pe_and_not_for_the_maximum() {
    assert_eq!(check(1), Ok(()));
    let failure = check(u32::MAX).expect_err("a petabyte");
    assert_eq!(failure.status, 1, "{failure:?}");
}
