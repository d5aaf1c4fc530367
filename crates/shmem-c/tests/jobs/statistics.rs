//! `SHMEM_STATS`: the counters of a program whose operations are known, on a node, over TCP, and on
//! virtual nodes.

use std::fs;

use serde_json::Value;
use testkit::{Job, Outcome, scenario};

/// The operations of tests/scenarios/counted.c on the next PE on the default context: the kind, the
/// number of operations, and the bytes.
const TO_NEXT: [(&str, u64, u64); 13] = [
    ("put", 4, 3 * 100 + 4),
    ("put_nbi", 2, 80),
    ("p", 4, 32),
    ("put_strided", 1, 24),
    ("put_signal", 1, 16),
    ("put_signal_nbi", 1, 16),
    ("get", 2, 128),
    ("get_nbi", 1, 8),
    ("g", 3, 24),
    ("get_strided", 1, 24),
    ("amo", 6, 48),
    ("amo_fetch", 2, 16),
    ("amo_fetch_nbi", 1, 8),
];
/// The operations on another context.
const ON_CONTEXT: (&str, u64, u64) = ("put_nbi", 7, 70);
/// The number and the bytes of the puts of a PE to itself.
const TO_ITSELF: (u64, u64) = (1, 8);
/// The calls whose time is counted, with their numbers. The collectives include those within
/// allocations.
const CALLS: [(&str, u64); 4] = [("collective", 5), ("fence", 2), ("quiet", 5), ("wait", 2)];

fn run(n: usize, statistics: &str, nodes: (&str, &str), lock: bool) -> Outcome {
    let job = Job::new(scenario!("counted.c"))
        .n(n)
        .env("SHMEM_STATS", statistics);
    let job = if lock { job.arg("lock") } else { job };
    let outcome = job
        .env("SHMEM_TRANSPORT", "tcp")
        .env(nodes.0, nodes.1)
        .run();
    outcome.assert_ok(n);
    outcome
}

/// Runs a job and returns the file of its statistics.
fn parsed(n: usize, nodes: (&str, &str), lock: bool) -> Value {
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("statistics.json");
    let outcome = run(n, &format!("json:{}", file.display()), nodes, lock);
    assert!(outcome.stderr.is_empty(), "{outcome}");
    let text = fs::read_to_string(&file).expect("PE 0 wrote the file");
    serde_json::from_str(&text).expect("JSON")
}

fn number(value: &Value) -> u64 {
    value
        .as_u64()
        .unwrap_or_else(|| panic!("{value} is no number"))
}

/// Returns each kind with its numbers of operations and bytes, in the order of the file.
fn kinds(value: &Value) -> Vec<(String, u64, u64)> {
    let kinds = value
        .as_object()
        .unwrap_or_else(|| panic!("{value} has no kinds"));
    let row = |(kind, of): (&String, &Value)| {
        (
            kind.clone(),
            number(&of["operations"]),
            number(&of["bytes"]),
        )
    };
    kinds.iter().map(row).collect()
}

fn sorted(kinds: impl IntoIterator<Item = (&'static str, u64, u64)>) -> Vec<(String, u64, u64)> {
    let kinds = kinds
        .into_iter()
        .map(|(kind, n, bytes)| (kind.to_owned(), n, bytes));
    let mut kinds: Vec<_> = kinds.collect();
    kinds.sort();
    kinds
}

/// Checks that every counter has the number of the program. `node_of` returns the node of a PE.
fn every_counter_is_known(n: usize, nodes: (&str, &str), node_of: impl Fn(usize) -> usize) {
    let all = parsed(n, nodes, false);
    assert_eq!(
        (number(&all["version"]), number(&all["n_pes"])),
        (1, n as u64)
    );
    let pes = all["pes"].as_array().expect("a list");
    assert_eq!(pes.len(), n);
    for (me, pe) in pes.iter().enumerate() {
        let next = (me + 1) % n;
        assert_eq!(
            (number(&pe["pe"]), number(&pe["node"])),
            (me as u64, node_of(me) as u64)
        );
        for (kind, calls) in CALLS {
            assert_eq!(
                number(&pe["calls"][kind]["calls"]),
                calls,
                "{kind} of PE {me}"
            );
        }
        assert!(
            pe["calls"].as_object().expect("kinds").len() == CALLS.len(),
            "{pe}"
        );

        let near = node_of(me) == node_of(next);
        let (with_next, other) = if near {
            ("on_node", "off_node")
        } else {
            ("off_node", "on_node")
        };
        let [default, context] = &pe["contexts"].as_array().expect("a list")[..] else {
            panic!("two contexts, not {}", pe["contexts"]);
        };
        let itself = ("put", TO_ITSELF.0, TO_ITSELF.1);
        let mut to_next = TO_NEXT;
        if near {
            to_next[0].1 += itself.1;
            to_next[0].2 += itself.2;
        }
        assert_eq!(kinds(&default[with_next]), sorted(to_next), "PE {me}");
        assert_eq!(
            kinds(&default[other]),
            sorted((!near).then_some(itself)),
            "PE {me}"
        );
        assert_eq!(kinds(&context[with_next]), sorted([ON_CONTEXT]), "PE {me}");
        assert!(kinds(&context[other]).is_empty(), "PE {me}");

        let sum = |what: fn(&(&str, u64, u64)) -> u64| {
            TO_NEXT.iter().chain([&ON_CONTEXT]).map(what).sum::<u64>()
        };
        let mut peers = [(next, sum(|kind| kind.1), sum(|kind| kind.2)), (me, 1, 8)];
        peers.sort_unstable();
        let peer = |peer: &Value| {
            let [pe, operations, bytes] =
                ["pe", "operations", "bytes"].map(|key| number(&peer[key]));
            (pe as usize, operations, bytes)
        };
        let found: Vec<_> = pe["peers"]
            .as_array()
            .expect("a list")
            .iter()
            .map(peer)
            .collect();
        assert_eq!(found, peers, "PE {me}");
    }
}

#[test]
fn every_counter_is_known_on_a_node() {
    every_counter_is_known(4, ("SHMEM_ONNODE", "on"), |_| 0);
}

#[test]
fn every_counter_is_known_off_node() {
    every_counter_is_known(3, ("SHMEM_ONNODE", "off"), |pe| pe);
}

#[test]
fn every_counter_is_known_on_virtual_nodes() {
    every_counter_is_known(4, ("SHMEM_VIRTUAL_NODES", "2+2"), |pe| pe / 2);
}

/// The counters of this many PEs need several steps to be exchanged.
#[test]
fn every_counter_of_many_pes_is_known() {
    every_counter_is_known(24, ("SHMEM_VIRTUAL_NODES", "12+12"), |pe| pe / 12);
}

#[test]
fn locks_count_by_time() {
    for nodes in ["on", "off"] {
        let all = parsed(3, ("SHMEM_ONNODE", nodes), true);
        for pe in all["pes"].as_array().expect("a list") {
            let lock = &pe["calls"]["lock"];
            assert_eq!(number(&lock["calls"]), 4);
            assert!(number(&lock["nanoseconds"]) > 0);
        }
    }
}

/// The table has a row for each kind. All PEs have the same counters, so the minimum, the median
/// and the maximum are equal.
#[test]
fn the_table_has_the_known_numbers() {
    let outcome = run(3, "1", ("SHMEM_ONNODE", "off"), false);
    let rows: Vec<Vec<&str>> = outcome
        .stderr
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    let row = |kind: &str, n: u64, bytes: u64| {
        let [n, bytes] = [n.to_string(), bytes.to_string()];
        let expected = [kind, &n, &n, &n, "0", &bytes, &bytes, &bytes, "0"];
        assert!(
            rows.iter().any(|row| *row == expected),
            "no row {expected:?}\n{outcome}"
        );
    };
    row("put", TO_ITSELF.0, TO_ITSELF.1);
    for (kind, n, bytes) in TO_NEXT {
        let more = if kind == ON_CONTEXT.0 {
            (ON_CONTEXT.1, ON_CONTEXT.2)
        } else {
            (0, 0)
        };
        row(kind, n + more.0, bytes + more.1);
    }
    assert!(
        rows.iter()
            .any(|row| row.first() == Some(&"polls") && row.len() == 5),
        "{outcome}"
    );
    let sent: u64 = TO_NEXT.iter().chain([&ON_CONTEXT]).map(|kind| kind.2).sum();
    for (me, row) in [(0, [8, sent, 0]), (1, [0, 8, sent]), (2, [sent, 0, 8])] {
        let row = row.map(|bytes| bytes.to_string());
        let expected = ["from", &me.to_string(), &row[0], &row[1], &row[2]];
        assert!(
            rows.iter().any(|row| *row == expected),
            "no row {expected:?}\n{outcome}"
        );
    }
    let heads: Vec<&str> = rows.iter().filter_map(|row| row.first().copied()).collect();
    assert_eq!(
        heads.iter().filter(|head| **head == "put").count(),
        2,
        "{outcome}"
    );
}

/// The network activity of threads depends on timing, but some counts cannot be zero.
#[test]
fn what_threads_do_on_the_network_is_counted() {
    let all = parsed(3, ("SHMEM_ONNODE", "off"), false);
    for pe in all["pes"].as_array().expect("a list") {
        let network = &pe["network"];
        assert!(number(&network["polls"]) > 0, "{network}");
        // At least the requests for which the last wait waited.
        assert!(number(&network["most_in_flight"]) > 0, "{network}");
    }
    let on_node = parsed(2, ("SHMEM_ONNODE", "on"), false);
    for pe in on_node["pes"].as_array().expect("a list") {
        assert!(
            pe["network"].as_object().expect("counts").is_empty(),
            "{pe}"
        );
    }
}

/// A job of one PE has no receive buffers.
#[test]
fn what_one_pe_does_is_counted() {
    let outcome = run(1, "1", ("SHMEM_ONNODE", "on"), false);
    assert!(outcome.stderr.contains("put_strided"), "{outcome}");
}

#[test]
fn nothing_is_counted_without_the_setting() {
    let outcome = Job::new(scenario!("counted.c")).n(2).run();
    outcome.assert_ok(2);
    assert!(outcome.stderr.is_empty(), "{outcome}");
}

#[test]
fn a_value_that_is_none_or_a_file_that_cannot_be_is_an_error() {
    for value in ["2", "json", "json:", "yes"] {
        let job = Job::new(scenario!("counted.c"))
            .n(2)
            .env("SHMEM_STATS", value);
        job.run().assert_fails(&["SHMEM_STATS", value]);
    }
    let job = Job::new(scenario!("counted.c"))
        .n(2)
        .env("SHMEM_STATS", "json:/no/such/directory/x");
    job.run()
        .assert_fails(&["SHMEM_STATS", "/no/such/directory/x"]);
}

/// One PE counts and the other one does not.
#[test]
fn all_pes_count_or_none() {
    let dir = tempfile::tempdir().expect("a directory");
    let script = r#"mkdir "$0" 2> /dev/null && export SHMEM_STATS=1; exec "$@""#;
    let (first, program) = (dir.path().join("first"), scenario!("counted.c"));
    let words = [
        "-c",
        script,
        first.to_str().expect("ASCII"),
        program.to_str().expect("ASCII"),
    ];
    let job = words.into_iter().fold(Job::new("sh").n(2), Job::arg);
    job.run()
        .assert_fails(&["SHMEM_STATS is ", "must be the same on all"]);
}
