//! Two collectives in a row with one dest: `SHMEM_CHECK=1` and the race detector report the pair
//! once, with both calls.

use std::fs;

use serde_json::Value;
use testkit::{Job, Outcome, scenario};

const SOURCE: &str = include_str!("../scenarios/results.c");

/// Pairs of the program: both routines, and the PEs of three that may write another PE's result
/// before that PE has left the first call.
const PAIRS: [(&str, [&str; 2], &[u32]); 10] = [
    (
        "old_routines",
        ["shmem_long_sum_to_all", "shmem_broadcast64"],
        &[1],
    ),
    (
        "another_root",
        ["shmem_long_broadcast", "shmem_long_broadcast"],
        &[2],
    ),
    (
        "a_part",
        ["shmem_long_sum_inscan", "shmem_long_fcollect"],
        &[0, 1, 2],
    ),
    (
        "columns",
        ["shmem_long_alltoalls", "shmem_long_alltoalls"],
        &[0, 1, 2],
    ),
    (
        "a_quiet_between",
        ["shmem_long_max_reduce", "shmem_long_alltoall"],
        &[0, 1, 2],
    ),
    (
        "root_receives_nothing",
        ["shmem_long_collect", "shmem_long_broadcast"],
        &[0],
    ),
    (
        "exscan",
        ["shmem_long_fcollect", "shmem_long_sum_exscan"],
        &[0, 1],
    ),
    (
        "the_same_root",
        ["shmem_long_broadcast", "shmem_long_broadcast"],
        &[0],
    ),
    (
        "the_same_again",
        ["shmem_long_alltoall", "shmem_long_alltoall"],
        &[0, 1, 2],
    ),
    (
        "team",
        ["shmem_long_min_reduce", "shmem_long_broadcast"],
        &[0],
    ),
];

/// The virtual nodes of the jobs: all PEs on one node, and two nodes connected by TCP.
const NODES: [&str; 2] = ["1", "1+2"];

fn job(how: &str, nodes: &str, check: &str) -> Job {
    let job = Job::new(scenario!("results.c")).n(3).arg(how);
    job.env("SHMEM_CHECK", check)
        .env("SHMEM_VIRTUAL_NODES", nodes)
        .env("SHMEM_TRANSPORT", "tcp")
        .env("SHMEM_SYMMETRIC_SIZE", "16m")
}

/// Returns the lines of the two calls of a pair.
fn lines(how: &str) -> [usize; 2] {
    let comment = format!("/* {how} */");
    let marked = (1..)
        .zip(SOURCE.lines())
        .filter(|(_, line)| line.contains(&comment));
    let lines: Vec<usize> = marked.map(|(number, _)| number).collect();
    lines.try_into().expect("two marked calls")
}

#[track_caller]
fn assert_warned(outcome: &Outcome, how: &str, [first, second]: [&str; 2], pes: &[u32]) {
    outcome.assert_ok(3);
    let [earlier, later] = lines(how).map(|line| format!("results.c:{line})"));
    let is_of_pair =
        |line: &str| line.contains(&format!(": {second} (called at ")) && line.contains(&earlier);
    let warnings: Vec<&str> = outcome.stderr.lines().collect();
    assert!(warnings.iter().all(|line| is_of_pair(line)), "{outcome}");
    assert!(
        warnings.iter().all(|line| line.contains(&later)),
        "{outcome}"
    );
    let words = format!("argument dest has bytes in common with dest of {first} (called at ");
    assert_eq!(outcome.warned_pes(&words), pes, "{outcome}");
}

#[test]
fn the_checks_warn_of_both_calls() {
    for nodes in NODES {
        for (how, routines, pes) in PAIRS {
            let outcome = job(how, nodes, "1").run();
            assert_warned(&outcome, how, routines, pes);
        }
    }
}

#[test]
fn the_race_detector_reports_both_calls() {
    for nodes in NODES {
        for (how, routines, _) in PAIRS {
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
            let mut sides = [0, 1].map(|i| {
                let access = &report["accesses"][i];
                let line = access["frames"][0]["line"].as_u64().expect("a line");
                let routine = access["access"].as_str().expect("a routine");
                (line as usize, routine.to_owned())
            });
            sides.sort_unstable();
            let lines = lines(how);
            let expected = [0, 1].map(|i| (lines[i], routines[i].to_owned()));
            assert_eq!(sides, expected, "{outcome}");
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
        assert!(
            detected.stderr.starts_with("rushmem: no race in "),
            "{detected}"
        );
    }
}
