//! `SHMEM_STATS`: the counters of a program whose operations are known, on a node, over TCP, and on
//! virtual nodes.

use std::fs;

use serde_json::Value;
use testkit::{Job, Outcome, scenario};

/// What is counted of the operations of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Count<'a> {
    kind: &'a str,
    operations: u64,
    bytes: u64,
}

const fn count(kind: &str, operations: u64, bytes: u64) -> Count<'_> {
    Count {
        kind,
        operations,
        bytes,
    }
}

/// The operations of tests/scenarios/counted.c on the next PE on the default context.
const TO_NEXT: [Count<'_>; 13] = [
    count("put", 4, 3 * 100 + 4),
    count("put_nbi", 2, 80),
    count("p", 4, 32),
    count("put_strided", 1, 24),
    count("put_signal", 1, 16),
    count("put_signal_nbi", 1, 16),
    count("get", 2, 128),
    count("get_nbi", 1, 8),
    count("g", 3, 24),
    count("get_strided", 1, 24),
    count("amo", 6, 48),
    count("amo_fetch", 2, 16),
    count("amo_fetch_nbi", 1, 8),
];
/// The operations on the next PE on another context.
const ON_CONTEXT: Count<'_> = count("put_nbi", 7, 70);
/// The operations of a PE on itself.
const TO_ITSELF: Count<'_> = count("put", 1, 8);
/// The calls whose time is counted, with their numbers. The collectives include those within
/// allocations.
const CALLS: [(&str, u64); 5] = [
    ("collective", 5),
    ("fence", 2),
    ("flush", 4),
    ("quiet", 5),
    ("wait", 2),
];

/// Returns the sums of all operations on the next PE.
fn total_to_next() -> Count<'static> {
    let mut total = count("all", ON_CONTEXT.operations, ON_CONTEXT.bytes);
    for Count {
        operations, bytes, ..
    } in TO_NEXT
    {
        total.operations += operations;
        total.bytes += bytes;
    }
    total
}

/// Returns a job of the program with a value of `SHMEM_STATS`, and with the variable that chooses
/// its nodes.
fn job(n: usize, statistics: &str, nodes: (&str, &str)) -> Job {
    Job::new(scenario!("counted.c"))
        .n(n)
        .env("SHMEM_STATS", statistics)
        .env("SHMEM_TRANSPORT", "tcp")
        .env(nodes.0, nodes.1)
}

/// Runs a job with an argument of the program, and returns the file of its statistics.
fn parsed(n: usize, nodes: (&str, &str), argument: Option<&str>) -> Value {
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("statistics.json");
    let job = job(n, &format!("json:{}", file.display()), nodes);

    let outcome = job.args(argument).run();
    outcome.assert_ok(n);
    assert!(outcome.stderr.is_empty(), "{outcome}");

    let text = fs::read_to_string(&file).expect("PE 0 wrote the file");
    serde_json::from_str(&text).expect("JSON")
}

fn number(value: &Value) -> u64 {
    value
        .as_u64()
        .unwrap_or_else(|| panic!("{value} is no number"))
}

/// Returns the counts of an object of the file, in its order: that of the kinds' names.
fn counts(value: &Value) -> Vec<Count<'_>> {
    let mut counts = Vec::new();
    for (kind, of_kind) in value.as_object().expect("kinds") {
        let operations = number(&of_kind["operations"]);
        counts.push(count(kind, operations, number(&of_kind["bytes"])));
    }
    counts
}

/// Checks that every counter has the number of the program. `node_of` returns the node of a PE.
fn every_counter_is_known(n: usize, nodes: (&str, &str), node_of: impl Fn(usize) -> usize) {
    let all = parsed(n, nodes, None);
    assert_eq!(number(&all["version"]), 1);
    assert_eq!(number(&all["n_pes"]), n as u64);
    let pes = all["pes"].as_array().expect("a list");
    assert_eq!(pes.len(), n);

    for (me, pe) in pes.iter().enumerate() {
        let next = (me + 1) % n;
        assert_eq!(number(&pe["pe"]), me as u64);
        assert_eq!(number(&pe["node"]), node_of(me) as u64);

        let calls = &pe["calls"];
        for (kind, n_calls) in CALLS {
            let counted = number(&calls[kind]["calls"]);
            assert_eq!(counted, n_calls, "{kind} of PE {me}");
        }
        let n_kinds = calls.as_object().expect("kinds").len();
        assert_eq!(n_kinds, CALLS.len(), "{pe}");

        contexts_are_known(&pe["contexts"], node_of(me) == node_of(next));
        peers_are_known(&pe["peers"], me as u64, next as u64);
    }
}

/// Checks the counters of the contexts of a PE. `near` is true if the next PE is on its node.
fn contexts_are_known(contexts: &Value, near: bool) {
    let [default, context] = &contexts.as_array().expect("a list")[..] else {
        panic!("two contexts, not {contexts}");
    };

    let mut to_next = TO_NEXT;
    to_next.sort_unstable();
    if near {
        let puts = to_next
            .iter_mut()
            .find(|count| count.kind == TO_ITSELF.kind)
            .expect("puts");
        puts.operations += TO_ITSELF.operations;
        puts.bytes += TO_ITSELF.bytes;
        assert_eq!(counts(&default["on_node"]), to_next, "{contexts}");
        assert_eq!(counts(&default["off_node"]), [], "{contexts}");
    } else {
        assert_eq!(counts(&default["on_node"]), [TO_ITSELF], "{contexts}");
        assert_eq!(counts(&default["off_node"]), to_next, "{contexts}");
    }

    let (with_next, other) = if near {
        ("on_node", "off_node")
    } else {
        ("off_node", "on_node")
    };
    assert_eq!(counts(&context[with_next]), [ON_CONTEXT], "{contexts}");
    assert_eq!(counts(&context[other]), [], "{contexts}");
}

/// Checks the counters of PE `me` by peer, which the file has in the order of the peers.
fn peers_are_known(peers: &Value, me: u64, next: u64) {
    let to_next = total_to_next();
    let mut expected = [
        [me, TO_ITSELF.operations, TO_ITSELF.bytes],
        [next, to_next.operations, to_next.bytes],
    ];
    expected.sort_unstable();

    let peers = peers.as_array().expect("a list");
    let found: Vec<[u64; 3]> = peers
        .iter()
        .map(|peer| ["pe", "operations", "bytes"].map(|key| number(&peer[key])))
        .collect();
    assert_eq!(found, expected, "PE {me}");
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
        let all = parsed(3, ("SHMEM_ONNODE", nodes), Some("lock"));
        for pe in all["pes"].as_array().expect("a list") {
            let lock = &pe["calls"]["lock"];
            assert_eq!(number(&lock["calls"]), 4);
            assert!(number(&lock["nanoseconds"]) > 0);
        }
    }
}

/// Checks that the table on standard error has a row with these columns.
#[track_caller]
fn assert_row(outcome: &Outcome, columns: &[&str]) {
    let mut lines = outcome.stderr.lines();
    let has_row = lines.any(|line| line.split_whitespace().eq(columns.iter().copied()));
    assert!(has_row, "no row {columns:?}\n{outcome}");
}

/// Checks the row of a kind. All PEs have the same counters, so the minimum, the median and the
/// maximum are equal, and PE 0 is named as the first that has the maximum.
#[track_caller]
fn assert_row_of(outcome: &Outcome, counted: Count<'_>) {
    let n = counted.operations.to_string();
    let bytes = counted.bytes.to_string();
    let columns = [counted.kind, &n, &n, &n, "0", &bytes, &bytes, &bytes, "0"];
    assert_row(outcome, &columns);
}

#[test]
fn the_table_has_the_known_numbers() {
    let outcome = job(3, "1", ("SHMEM_ONNODE", "off")).run();
    outcome.assert_ok(3);

    // The table adds up the contexts, but has accesses on the node and off the node apart.
    assert_row_of(&outcome, TO_ITSELF);
    for mut to_next in TO_NEXT {
        if to_next.kind == ON_CONTEXT.kind {
            to_next.operations += ON_CONTEXT.operations;
            to_next.bytes += ON_CONTEXT.bytes;
        }
        assert_row_of(&outcome, to_next);
    }
    let heads = outcome
        .stderr
        .lines()
        .filter_map(|line| line.split_whitespace().next());
    let n_puts = heads.filter(|head| *head == "put").count();
    assert_eq!(n_puts, 2, "{outcome}");

    // How often threads poll is not known.
    let has_polls = outcome.stderr.lines().any(|line| {
        let columns: Vec<&str> = line.split_whitespace().collect();
        columns.first() == Some(&"polls") && columns.len() == 5
    });
    assert!(has_polls, "{outcome}");

    // The bytes from each PE to each PE.
    let to_next = total_to_next().bytes.to_string();
    let to_itself = TO_ITSELF.bytes.to_string();
    assert_row(&outcome, &["from", "0", &to_itself, &to_next, "0"]);
    assert_row(&outcome, &["from", "1", "0", &to_itself, &to_next]);
    assert_row(&outcome, &["from", "2", &to_next, "0", &to_itself]);
}

/// The network activity of threads depends on timing, but some counts cannot be zero.
#[test]
fn what_threads_do_on_the_network_is_counted() {
    let off_node = parsed(3, ("SHMEM_ONNODE", "off"), None);
    for pe in off_node["pes"].as_array().expect("a list") {
        let network = &pe["network"];
        assert!(number(&network["polls"]) > 0, "{network}");
        // At least the requests for which the last wait waited.
        assert!(number(&network["most_in_flight"]) > 0, "{network}");
    }

    let on_node = parsed(2, ("SHMEM_ONNODE", "on"), None);
    for pe in on_node["pes"].as_array().expect("a list") {
        let network = pe["network"].as_object().expect("counts");
        assert!(network.is_empty(), "{pe}");
    }
}

/// A job of one PE has no receive buffers.
#[test]
fn what_one_pe_does_is_counted() {
    let outcome = job(1, "1", ("SHMEM_ONNODE", "on")).run();
    outcome.assert_ok(1);
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
    let job = Job::new(scenario!("counted.c")).n(2);
    for value in ["2", "json", "json:", "yes"] {
        let outcome = job.clone().env("SHMEM_STATS", value).run();
        outcome.assert_fails(&["SHMEM_STATS", value]);
    }

    let file = "/no/such/directory/x";
    let outcome = job.env("SHMEM_STATS", format!("json:{file}")).run();
    outcome.assert_fails(&["SHMEM_STATS", file]);
}

/// One PE counts and the other one does not.
#[test]
fn all_pes_count_or_none() {
    let dir = tempfile::tempdir().expect("a directory");
    // The PE that makes the directory first counts.
    let script = r#"mkdir "$0" 2> /dev/null && export SHMEM_STATS=1; exec "$@""#;

    let outcome = Job::new("sh")
        .n(2)
        .args(["-c", script])
        .arg(dir.path().join("first").display())
        .arg(scenario!("counted.c").display())
        .run();
    outcome.assert_fails(&["SHMEM_STATS is ", "must be the same on all"]);
}
