//! Arrays that overlap, and blocks of collectives at wrong places.

use testkit::{Job, program};

use super::{checked_misuse, checked_off_node_misuse, misuse, off_node_misuse};

/// Blocks of two members for one place, in place, and beyond the array. The PE that is named is the
/// one that passes the wrong offset.
#[test]
fn unequal_blocks_at_wrong_places() {
    const CALL: &str = "shmemx_team_alltoallvmem";
    for (how, words) in [
        (
            "places_overlap",
            [
                CALL,
                "the 4 bytes of member 1 would go to byte 4",
                "those of member 2 to byte 7",
            ],
        ),
        (
            "blocks_in_place",
            [
                CALL,
                "the 4 bytes for member 0 from byte 0 of argument source",
                "overlap those of member 0 from byte 0 of argument dest",
            ],
        ),
        (
            "blocks_to_other_array",
            [CALL, "not all in the same collective", "dest"],
        ),
        (
            "block_beyond",
            ["PE 2: ", CALL, "argument dest: 20 bytes at"],
        ),
        ("block_nowhere", ["PE 2: ", CALL, "argument dest"]),
    ] {
        checked_misuse(how).assert_fails(&words);
        checked_off_node_misuse(how).assert_fails(&words);
    }
}

/// Without checks, the PE that sends the block names the one that passes the offset.
#[test]
fn unequal_blocks_outside_of_symmetric_memory() {
    let words = [
        "shmemx_team_alltoallvmem",
        "the 4 bytes for member 2 would go to byte 1099511627776 of argument dest",
    ];
    misuse("block_nowhere").assert_fails(&words);
    off_node_misuse("block_nowhere").assert_fails(&words);
}

#[test]
fn unequal_blocks_without_an_array() {
    misuse("places_null").assert_fails(&["shmemx_team_alltoallvmem: argument d_offsets is null"]);
    misuse("sizes_null").assert_fails(&["shmemx_alltoallv: argument s_sizes is null"]);
}

#[test]
fn arrays_that_overlap() {
    for (how, call) in [
        ("put_overlaps", "shmem_int_put"),
        ("get_overlaps", "shmem_int_iget"),
        ("reduce_overlaps", "shmem_int_sum_reduce"),
        ("broadcast_overlaps", "shmem_broadcast32"),
        ("alltoall_overlaps", "shmem_int_alltoall"),
        ("reduce_scatter_overlaps", "shmemx_int_sum_reduce_scatter"),
        ("gather_overlaps", "shmemx_int_gather"),
        ("scatter_overlaps", "shmemx_int_scatter"),
    ] {
        let outcome = checked_misuse(how);
        let sentence = outcome.assert_fails(&[call, "overlap", "source is ", "dest is "]);
        let words: Vec<&str> = sentence.split([' ', ',', ';']).collect();

        // The first and the last address of both arrays.
        let n_addresses = words.iter().filter(|word| word.starts_with("0x")).count();
        assert_eq!(n_addresses, 4, "not from where to where: {sentence}");

        let n_lengths = words.iter().filter(|word| **word == "bytes").count();
        assert_eq!(n_lengths, 2, "not how many bytes: {sentence}");
    }
}

/// Many programs do this, although the standard leaves it undefined. Each routine is warned of
/// once, not each call.
#[test]
fn a_source_that_is_the_destination() {
    let outcome = Job::new(program!("in_place.c"))
        .n(3)
        .env("SHMEM_CHECK", "1")
        .run();
    outcome.assert_ok(3);

    let mut expected = Vec::new();
    for collective in ["alltoall", "alltoalls", "broadcast", "collect", "fcollect"] {
        expected.push(format!("shmem_int_{collective}"));
        expected.push(format!("shmem_{collective}32"));
    }
    expected.sort_unstable();

    let mut calls: Vec<&str> = outcome.stderr.lines().map(warned_call).collect();
    calls.sort_unstable();
    assert_eq!(calls, expected, "{outcome}");
}

/// Returns the routine that a warning about equal source and destination names.
fn warned_call(line: &str) -> &str {
    let (call, text) = line
        .strip_prefix("warning: PE 0: ")
        .and_then(|rest| rest.split_once(": "))
        .unwrap_or_else(|| panic!("not such a warning: {line}"));
    let warning = "source and dest are the same array";
    assert!(text.contains(warning), "{line}");
    call
}
