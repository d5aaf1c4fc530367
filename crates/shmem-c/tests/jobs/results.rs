//! Two collectives in a row with one dest: `SHMEM_CHECK=1` and the race detector report the pair
//! once, with both calls.

use std::fs;

use serde_json::Value;
use testkit::{Job, Outcome, scenario};

const SOURCE: &str = include_str!("../scenarios/results.c");

/// Two calls of the program, and the words in the comments beside them.
struct Pair {
    how: &'static str,
    routines: [&'static str; 2],
    /// The PEs of three that may write another PE's result before that PE has left the first call.
    pes: &'static [u32],
}

const PAIRS: [Pair; 12] = [
    Pair {
        how: "old_routines",
        routines: ["shmem_long_sum_to_all", "shmem_broadcast64"],
        pes: &[1],
    },
    Pair {
        how: "another_root",
        routines: ["shmem_long_broadcast", "shmem_long_broadcast"],
        pes: &[2],
    },
    Pair {
        how: "a_part",
        routines: ["shmem_long_sum_inscan", "shmem_long_fcollect"],
        pes: &[0, 1, 2],
    },
    Pair {
        how: "columns",
        routines: ["shmem_long_alltoalls", "shmem_long_alltoalls"],
        pes: &[0, 1, 2],
    },
    Pair {
        how: "a_quiet_between",
        routines: ["shmem_long_max_reduce", "shmem_long_alltoall"],
        pes: &[0, 1, 2],
    },
    Pair {
        how: "root_receives_nothing",
        routines: ["shmem_long_collect", "shmem_long_broadcast"],
        pes: &[0],
    },
    Pair {
        how: "exscan",
        routines: ["shmem_long_fcollect", "shmem_long_sum_exscan"],
        pes: &[0, 1],
    },
    Pair {
        how: "unequal_blocks",
        routines: ["shmemx_team_alltoallvmem", "shmem_long_broadcast"],
        pes: &[0],
    },
    Pair {
        how: "the_same_root",
        routines: ["shmem_long_broadcast", "shmem_long_broadcast"],
        pes: &[0],
    },
    Pair {
        how: "the_same_again",
        routines: ["shmem_long_alltoall", "shmem_long_alltoall"],
        pes: &[0, 1, 2],
    },
    Pair {
        how: "short_collects",
        routines: ["shmem_long_collect", "shmem_long_collect"],
        pes: &[0, 1, 2],
    },
    Pair {
        how: "team",
        routines: ["shmem_long_min_reduce", "shmem_long_broadcast"],
        pes: &[0],
    },
];

/// The virtual nodes of the jobs: all PEs on one node, and two nodes connected by TCP.
const NODES: [&str; 2] = ["1", "1+2"];

fn job(how: &str, nodes: &str, check: &str) -> Job {
    Job::new(scenario!("results.c"))
        .n(3)
        .arg(how)
        .env("SHMEM_CHECK", check)
        .env("SHMEM_VIRTUAL_NODES", nodes)
        .env("SHMEM_TRANSPORT", "tcp")
        .env("SHMEM_SYMMETRIC_SIZE", "16m")
}

/// Returns the lines of the two calls of a pair.
fn lines(how: &str) -> [usize; 2] {
    let comment = format!("/* {how} */");
    let mut lines = Vec::new();
    for (number, line) in (1..).zip(SOURCE.lines()) {
        if line.contains(&comment) {
            lines.push(number);
        }
    }
    lines.try_into().expect("two marked calls")
}

#[track_caller]
fn assert_warned(outcome: &Outcome, pair: &Pair) {
    outcome.assert_ok(3);

    let [first, second] = pair.routines;
    let [earlier, later] = lines(pair.how).map(|line| format!("results.c:{line})"));
    let call = format!(": {second} (called at ");
    for warning in outcome.stderr.lines() {
        for part in [&call, &earlier, &later] {
            assert!(warning.contains(part), "{part}\n{outcome}");
        }
    }

    let words = format!("argument dest has bytes in common with dest of {first} (called at ");
    assert_eq!(outcome.warned_pes(&words), pair.pes, "{outcome}");
}

#[test]
fn the_checks_warn_of_both_calls() {
    for nodes in NODES {
        for pair in &PAIRS {
            assert_warned(&job(pair.how, nodes, "1").run(), pair);
        }
    }
}

#[test]
fn the_race_detector_reports_both_calls() {
    for nodes in NODES {
        for Pair { how, routines, .. } in &PAIRS {
            let found = tempfile::NamedTempFile::new().expect("a file for the reports");
            let outcome = job(how, nodes, "races")
                .env("SHMEM_RACES_JSON", found.path().display())
                .run();
            assert_eq!(outcome.code(), 66, "{outcome}");
            assert!(!outcome.stderr.contains("warning"), "{outcome}");

            let text = fs::read_to_string(found.path()).expect("the reports");
            let reports: Vec<&str> = text.lines().collect();
            assert_eq!(reports.len(), 1, "{outcome}");

            let report: Value = serde_json::from_str(reports[0]).expect("JSON");
            let mut calls = Vec::new();
            for access in report["accesses"].as_array().expect("accesses") {
                let line = access["frames"][0]["line"].as_u64().expect("a line");
                let routine = access["access"].as_str().expect("a routine");
                calls.push((line as usize, routine));
            }
            // The report may have either access first.
            calls.sort_unstable();

            let [first, second] = lines(how);
            let expected = [(first, routines[0]), (second, routines[1])];
            assert_eq!(calls, expected, "{outcome}");
        }
    }
}

#[test]
fn nothing_is_said_of_calls_that_are_ordered() {
    for nodes in NODES {
        let checked = job("none", nodes, "1").run();
        checked.assert_ok(3);
        assert_eq!(checked.stderr, "", "{checked}");

        let detected = job("none", nodes, "races").run();
        detected.assert_ok(3);
        let verdict = "rushmem: no race in ";
        assert!(detected.stderr.starts_with(verdict), "{detected}");
    }
}
