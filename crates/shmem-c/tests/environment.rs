//! Environment variables of the standard, read as it says, and those of our own.

use testkit::{Job, Outcome, program};

/// A job of 2 PEs that can have `possible` bytes in one piece and not `impossible`; 0 leaves that out.
fn heap(variables: &[(&str, &str)], possible: u64, impossible: u64) -> Outcome {
    let job = Job::new(program!("heap_size.c")).n(2).arg(possible).arg(impossible);
    variables.iter().fold(job, |job, (name, value)| job.env(name, value)).run()
}

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// Point 69: at least the size asked for, less what the allocator needs for itself; far more cannot be had.
#[test]
fn the_heap_has_the_size_asked_for() {
    for (text, size) in [
        ("64K", 64 * KIB),
        ("65536", 64 * KIB),
        (".5m", MIB / 2),
        ("0.5M", MIB / 2),
        ("1.5m", 3 * MIB / 2),
        ("3.1M", 3_250_586),
        ("20kk", 20 * KIB),
        ("0.01g", 10_737_419),
        ("0.00002T", 21_990_233),
        ("2mebibytes", 2 * MIB),
    ] {
        heap(&[("SHMEM_SYMMETRIC_SIZE", text)], size / 2, size + 8 * MIB).assert_ok(2);
    }
}

#[test]
fn a_heap_of_no_bytes_is_allowed() {
    for text in ["0", "0k", "0.0g"] {
        heap(&[("SHMEM_SYMMETRIC_SIZE", text)], 0, 8 * MIB).assert_ok(2);
    }
}

#[test]
fn the_old_name_counts_where_the_new_one_is_not_set() {
    heap(&[("SMA_SYMMETRIC_SIZE", "2m")], MIB, 10 * MIB).assert_ok(2);
    heap(&[("SMA_SYMMETRIC_SIZE", "2m"), ("SHMEM_SYMMETRIC_SIZE", "32m")], 16 * MIB, 40 * MIB)
        .assert_ok(2);
    heap(&[("SMA_SYMMETRIC_SIZE", "abc"), ("SHMEM_SYMMETRIC_SIZE", "2m")], MIB, 10 * MIB)
        .assert_ok(2);
}

#[test]
fn a_size_that_is_none_is_an_error() {
    for text in ["abc", "-1", "1x2", "", "k", ".", "1,5m", "nan", "99999999999999999999"] {
        heap(&[("SHMEM_SYMMETRIC_SIZE", text)], 0, 0).assert_fails(&["SHMEM_SYMMETRIC_SIZE", text]);
    }
    heap(&[("SMA_SYMMETRIC_SIZE", "abc")], 0, 0).assert_fails(&["SMA_SYMMETRIC_SIZE", "abc"]);
}

#[test]
fn a_heap_that_cannot_be_had_is_one_sentence() {
    for text in ["1000t", "16000000t"] {
        let outcome = heap(&[("SHMEM_SYMMETRIC_SIZE", text)], 0, 0);
        outcome.assert_fails(&["SHMEM_SYMMETRIC_SIZE"]);
    }
}

#[test]
fn pes_of_a_node_can_do_without_shared_memory() {
    heap(&[("SHMEM_ONNODE", "on")], MIB, 0).assert_ok(2);
    heap(&[("SHMEM_ONNODE", "off")], MIB, 0).assert_ok(2);
    heap(&[("SHMEM_ONNODE", "maybe")], 0, 0).assert_fails(&["SHMEM_ONNODE", "maybe"]);
}

/// Peers that leave a network after its last finalize are not lost.
#[test]
fn pes_that_share_no_memory_leave_in_peace() {
    Job::new(program!("lingers.c")).n(6).env("SHMEM_ONNODE", "off").run().assert_ok(6);
}

#[test]
fn a_machine_splits_into_nodes_that_fit_its_pes() {
    heap(&[("SHMEM_VIRTUAL_NODES", "2")], MIB, 0).assert_ok(2);
    heap(&[("SHMEM_VIRTUAL_NODES", "1+1")], MIB, 0).assert_ok(2);
    for text in ["3", "1+2", "0", "two", "1+"] {
        heap(&[("SHMEM_VIRTUAL_NODES", text)], 0, 0).assert_fails(&["SHMEM_VIRTUAL_NODES"]);
    }
}

/// There is no fallback from a transport that was asked for.
#[test]
fn a_transport_that_is_not_there_ends_the_job() {
    for (text, runs) in [("auto", true), ("tcp", true), ("pigeon", false)] {
        let settings = [("SHMEM_ONNODE", "off"), ("SHMEM_TRANSPORT", text)];
        if runs {
            heap(&settings, MIB, 0).assert_ok(2);
        } else {
            heap(&settings, 0, 0).assert_fails(&["SHMEM_TRANSPORT", text, "tcp"]);
            heap(&settings[1..], 0, 0).assert_fails(&["SHMEM_TRANSPORT", text, "tcp"]);
        }
    }
}

/// Once per job, wherever it goes; the program's own output is untouched.
#[test]
fn version_and_help_are_printed_on_request() {
    let plain = heap(&[], 0, 0);
    for (name, word) in
        [("SHMEM_VERSION", "1.6"), ("SMA_VERSION", "1.6"), ("SHMEM_INFO", "SHMEM_TCP_INTERFACE")]
    {
        let outcome = heap(&[(name, "1")], 0, 0);
        outcome.assert_ok(2);
        let all = outcome.stdout.clone() + &outcome.stderr;
        assert_eq!(all.lines().filter(|line| line.contains(word)).count(), 1, "{name}\n{outcome}");
        assert!(!plain.stdout.contains(word) && !plain.stderr.contains(word), "{plain}");
    }
    heap(&[("SHMEM_DEBUG", "2")], 0, 0).assert_ok(2);
}
