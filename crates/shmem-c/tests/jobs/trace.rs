//! `SHMEM_TRACE`: the traces of a program whose operations are known, on a node and over TCP, of a
//! program that is killed, in a ring that is too small, and in a directory that cannot be created.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use rushmem_trace::job::JobTrace;
use rushmem_trace::layout::Kind;
use rushmem_trace::pe::PeTrace;
use serde_json::Value;
use testkit::{Job, Outcome, prefix, program, scenario};

/// The bytes that each PE of tests/scenarios/counted.c transfers to or from the next PE, on the
/// default context and on another one. tests/jobs/statistics.rs has them by kind.
const TO_NEXT: u64 = 728 + 70;
/// The bytes that each PE puts to itself.
const TO_ITSELF: u64 = 8;
/// The number of operations of each PE that a quiet completes.
const IN_FLIGHT: usize = 2 + 1 + 1 + 1 + 7;

fn job(n: usize, dir: &Path) -> Job {
    Job::new(scenario!("counted.c"))
        .n(n)
        .env("SHMEM_TRACE", dir.display())
}

/// Runs `shmem-info trace`, which shows the trace in a directory and writes its page.
fn shown(dir: &Path) -> Outcome {
    Job::direct(prefix().join("bin/shmem-info"))
        .arg("trace")
        .arg(dir.display())
        .run()
}

/// Returns the events of the trace in a directory.
fn events(dir: &Path) -> Vec<Value> {
    let text = fs::read_to_string(dir.join("trace.json")).expect("PE 0 wrote the trace");
    let Value::Object(mut trace) = serde_json::from_str(&text).expect("JSON") else {
        panic!("no object: {text}")
    };
    match trace.remove("traceEvents") {
        Some(Value::Array(events)) => events,
        other => panic!("no events: {other:?}"),
    }
}

fn events_of_phase<'a>(events: &'a [Value], phase: &'a str) -> impl Iterator<Item = &'a Value> {
    events.iter().filter(move |event| event["ph"] == phase)
}

/// Returns the events of a phase that one of `n` PEs has.
fn events_of_pe<'a>(events: &'a [Value], phase: &'a str, me: u64, n: u64) -> Vec<&'a Value> {
    events_of_phase(events, phase)
        .filter(|event| pe(event, n) == me)
        .collect()
}

fn n_named(events: &[&Value], name: &str) -> usize {
    events.iter().filter(|event| event["name"] == name).count()
}

/// Returns the PE of an event, from the number of its track.
fn pe(event: &Value, n: u64) -> u64 {
    (event["tid"].as_u64().expect("a track") - 1) % n
}

fn text<'a>(event: &'a Value, key: &str) -> &'a str {
    event[key]
        .as_str()
        .unwrap_or_else(|| panic!("no {key} in {event}"))
}

fn number(event: &Value, key: &str) -> f64 {
    event[key]
        .as_f64()
        .unwrap_or_else(|| panic!("no {key} in {event}"))
}

/// Checks that the trace has every call, access, message and operation in flight of the program
/// once.
fn everything_is_there(nodes: (&str, &str), node_of: impl Fn(u64) -> u64) {
    const N: u64 = 4;
    let dir = tempfile::tempdir().expect("a directory");
    let outcome = job(N as usize, dir.path())
        .env("SHMEM_TRANSPORT", "tcp")
        .env(nodes.0, nodes.1)
        .run();
    outcome.assert_ok(N as usize);
    assert!(outcome.stderr.is_empty(), "{outcome}");

    let events = events(dir.path());
    for slice in events_of_phase(&events, "X") {
        assert_eq!(slice["pid"], node_of(pe(slice, N)) + 1, "{slice}");
        assert!(number(slice, "dur") >= 0.0, "{slice}");
        assert!(number(slice, "ts") >= 0.0, "{slice}");
    }

    let mut bytes = BTreeMap::new();
    for me in 0..N {
        bytes.insert((me, me), TO_ITSELF);
        bytes.insert((me, (me + 1) % N), TO_NEXT);
    }
    assert_eq!(bytes_between_pes(&events, N), bytes);

    for me in 0..N {
        calls_are_there(&events, me, N);
        operations_in_flight_are_there(&events, me, N);
    }
    every_flow_goes_forward(&events, N);
}

/// Returns the number of bytes that each PE (the first of a pair) transfers to or from each one.
fn bytes_between_pes(events: &[Value], n: u64) -> BTreeMap<(u64, u64), u64> {
    let mut bytes = BTreeMap::new();
    for slice in events_of_phase(events, "X") {
        if ["put", "get", "amo"].contains(&text(slice, "cat")) {
            let peer = slice["args"]["peer"].as_u64().expect("a number");
            let nbytes = slice["args"]["bytes"].as_u64().expect("a number");
            *bytes.entry((pe(slice, n), peer)).or_insert(0) += nbytes;
        }
    }
    bytes
}

fn calls_are_there(events: &[Value], me: u64, n: u64) {
    let slices = events_of_pe(events, "X", me, n);
    for (call, n_calls) in [
        ("shmem_putmem", 4),
        ("shmem_long_p", 4),
        ("shmem_long_g", 3),
        ("shmem_signal_wait_until", 1),
        // One call by the program, and one within the barriers.
        ("shmem_quiet", 2),
    ] {
        assert_eq!(n_named(&slices, call), n_calls, "{call} of PE {me}");
    }

    let metadata = events_of_pe(events, "M", me, n);
    assert_eq!(n_named(&metadata, "thread_name"), 1, "PE {me}");
}

/// Checks that each operation in flight has a begin and an end, and that the counter of bytes in
/// flight changes at both and is 0 at last.
fn operations_in_flight_are_there(events: &[Value], me: u64, n: u64) {
    let begins = events_of_pe(events, "b", me, n);
    let ends = events_of_pe(events, "e", me, n);
    assert_eq!([begins.len(), ends.len()], [IN_FLIGHT; 2], "PE {me}");

    let counter = events_of_pe(events, "C", me, n);
    assert_eq!(counter.len(), 2 * IN_FLIGHT, "PE {me}");
    let last = counter
        .into_iter()
        .max_by(|a, b| number(a, "ts").total_cmp(&number(b, "ts")))
        .expect("a counter");
    assert_eq!(last["args"]["bytes"], 0, "PE {me}");
}

/// Returns the begins (phase `s`) or the ends (phase `f`) of all flows by their numbers.
fn flows<'a>(events: &'a [Value], phase: &'a str) -> BTreeMap<u64, &'a Value> {
    let mut flows = BTreeMap::new();
    for event in events_of_phase(events, phase) {
        flows.insert(event["id"].as_u64().expect("a number"), event);
    }
    flows
}

/// Checks that each flow begins and ends once, not before its beginning, and that the signal for
/// which a PE waits is sent by the PE before it.
fn every_flow_goes_forward(events: &[Value], n: u64) {
    let begins = flows(events, "s");
    let ends = flows(events, "f");
    assert!(begins.keys().eq(ends.keys()), "{begins:?} {ends:?}");

    let mut signaled = Vec::new();
    for (id, begin) in begins {
        let end = ends[&id];
        // The clocks of nodes may differ by the time of a message, less than 1000 us.
        let latest = number(end, "ts") + 1000.0;
        assert!(number(begin, "ts") <= latest, "{begin} {end}");

        if text(begin, "name") == "put" {
            signaled.push((pe(begin, n), pe(end, n)));
        }
    }
    for me in 0..n {
        let is_signaled = signaled.contains(&(me, (me + 1) % n));
        assert!(is_signaled, "PE {me}: {signaled:?}");
    }
}

#[test]
fn everything_is_there_on_a_node() {
    everything_is_there(("SHMEM_ONNODE", "on"), |_| 0);
}

#[test]
fn everything_is_there_on_virtual_nodes() {
    everything_is_there(("SHMEM_VIRTUAL_NODES", "2+2"), |pe| pe / 2);
}

/// The program initializes the library again after its last finalize, five times.
#[test]
fn all_sessions_of_a_program_are_there() {
    let dir = tempfile::tempdir().expect("a directory");
    let outcome = Job::new(program!("init_finalize.c"))
        .n(2)
        .env("SHMEM_TRACE", dir.path().display())
        .run();
    outcome.assert_ok(2);

    let events = events(dir.path());
    for me in 0..2 {
        let slices = events_of_pe(&events, "X", me, 2);
        assert_eq!(n_named(&slices, "shmem_int_p"), 3 + 5, "PE {me}");
    }
}

/// The root returns from each broadcast long before the other PE enters it.
#[test]
fn no_arrow_of_a_broadcast_goes_back_in_time() {
    let dir = tempfile::tempdir().expect("a directory");
    Job::new(scenario!("late_in_broadcast.c"))
        .n(2)
        .env("SHMEM_TRACE", dir.path().display())
        .run()
        .assert_ok(2);

    let events = events(dir.path());
    let ends = flows(&events, "f");
    let mut n_broadcasts = 0;
    for (id, begin) in flows(&events, "s") {
        let end = ends[&id];
        assert!(number(begin, "ts") <= number(end, "ts"), "{begin} {end}");
        if pe(begin, 2) == 0 && pe(end, 2) == 1 {
            n_broadcasts += 1;
        }
    }
    assert!(
        n_broadcasts >= 5,
        "the data of each broadcast goes from PE 0 to PE 1"
    );
}

/// In a scan, a PE gets the operand of the other PE, which is on another node.
#[test]
fn an_operand_that_is_loaded_moves_to_the_pe_that_loads_it() {
    let dir = tempfile::tempdir().expect("a directory");
    Job::new(program!("scan.c"))
        .n(2)
        .env("SHMEM_TRACE", dir.path().display())
        .env("SHMEM_VIRTUAL_NODES", "1+1")
        .env("SHMEM_TRANSPORT", "tcp")
        .env("SHMEM_SCAN_ALGORITHM", "direct")
        .run()
        .assert_ok(2);

    let trace = JobTrace::of_dir(dir.path()).expect("a trace");
    let is_loaded = trace.pes.iter().any(has_loaded_in_a_scan);
    assert!(is_loaded, "no PE has loaded an operand of a scan");
}

/// Returns true if one of two PEs has copied data from the other one during a scan.
fn has_loaded_in_a_scan(pe: &PeTrace) -> bool {
    for call in &pe.records {
        let Some(end) = call.end else { continue };
        if !pe.name(call).contains("_inscan") {
            continue;
        }

        let has_loaded = pe.records.iter().any(|copy| {
            let is_load = copy.kind == Kind::Move && copy.subject[0] == 1;
            let is_from_other = copy.peer == Some(1 - pe.pe);
            is_load && is_from_other && (call.begin..end).contains(&copy.begin)
        });
        if has_loaded {
            return true;
        }
    }
    false
}

#[test]
fn the_oldest_records_are_dropped_and_that_is_said() {
    let dir = tempfile::tempdir().expect("a directory");
    let outcome = job(2, dir.path()).env("SHMEM_TRACE_SIZE", "1k").run();
    outcome.assert_ok(2);
    let warning = "of the oldest records were dropped; set SHMEM_TRACE_SIZE to more than 1";
    assert!(outcome.stderr.contains(warning), "{outcome}");

    let events = events(dir.path());
    for me in 0..2 {
        // A record has 64 bytes.
        let slices = events_of_pe(&events, "X", me, 2);
        assert_eq!(slices.len(), 1024 / 64, "PE {me}");

        let instants = events_of_pe(&events, "i", me, 2);
        let notes = instants
            .iter()
            .filter(|event| text(event, "name").ends_with("older records were dropped"));
        assert_eq!(notes.count(), 1, "PE {me}");
    }

    let outcome = shown(dir.path());
    let note = "of the oldest records were dropped";
    assert!(outcome.stdout.contains(note), "{outcome}");
    let page = fs::read_to_string(dir.path().join("trace.html")).expect("a page");
    assert!(
        page.contains("dropped records"),
        "the legend of the timeline"
    );
}

/// All PEs leave their files, and that of the killed PE has its calls up to then.
#[test]
fn what_a_killed_pe_did_is_kept() {
    let dir = tempfile::tempdir().expect("a directory");
    let outcome = Job::new(scenario!("death.c"))
        .n(4)
        .arg("late_kill")
        .env("SHMEM_TRACE", dir.path().display())
        .run();
    outcome.assert_fails(&["PE 1", "SIGKILL"]);
    assert!(
        !dir.path().join("trace.json").exists(),
        "the job did not finalize"
    );

    let trace = JobTrace::of_dir(dir.path()).expect("a trace");
    assert_eq!(trace.missing().n, 0);
    assert!(!trace.pes[1].records.is_empty(), "PE 1 did something");
    let one_waits = [0, 2, 3].into_iter().any(|pe| {
        let mut records = trace.pes[pe].records.iter();
        records.any(|record| record.end.is_none())
    });
    assert!(one_waits, "the others wait for PE 1");

    check_shown(dir.path());
    let events = events(dir.path());
    assert!(
        events_of_phase(&events, "B").next().is_some(),
        "a call that has not ended"
    );
}

/// Checks that `shmem-info trace` writes the trace that the job could not write, and the page.
fn check_shown(dir: &Path) {
    let outcome = shown(dir);
    assert_eq!(outcome.code(), 0, "{outcome}");
    let has_waits = outcome.stdout.contains(" when its trace ended.");
    assert!(has_waits, "{outcome}");
    for line in outcome.lines() {
        // The name of the file is as long as that of the directory.
        let is_short = line.len() <= 100 || line.contains("trace.json");
        assert!(is_short, "{outcome}");
    }

    let page = fs::read_to_string(dir.join("trace.html")).expect("a page");
    for part in [
        "Trace of a job of 4 PEs",
        "Bytes between PEs",
        "Timeline",
        "outside the library",
        "Who made others wait",
    ] {
        assert!(page.contains(part), "no {part}");
    }

    let empty = tempfile::tempdir().expect("a directory");
    let outcome = shown(empty.path());
    assert_ne!(outcome.code(), 0, "{outcome}");
    assert!(outcome.stderr.contains("has no traces of PEs"), "{outcome}");
}

/// The trace has the places in the program of a call that waits and of the call that ends the wait.
#[test]
fn late_calls_are_found_in_the_program() {
    let dir = tempfile::tempdir().expect("a directory");
    let outcome = Job::new(scenario!("late.c", "-g"))
        .n(2)
        .env("SHMEM_TRACE", dir.path().display())
        .run();
    assert_eq!(outcome.code(), 0, "{outcome}");
    assert_eq!(outcome.stderr, "", "{outcome}");

    let mut n_places = 0;
    for event in events(dir.path()) {
        if event["name"] == "shmem_barrier_all"
            && let Some(place) = event["args"]["called at"].as_str()
        {
            assert!(place.starts_with("late.c:"), "{place}");
            n_places += 1;
        }
    }
    assert!(n_places > 0);

    let outcome = shown(dir.path());
    // Sentences are broken into lines.
    let words: Vec<&str> = outcome.stdout.split_whitespace().collect();
    let text = words.join(" ");
    // Which PE comes last depends on the start, too.
    for part in [" was in shmem_", " (late.c:", " made others wait "] {
        assert!(text.contains(part), "no {part:?}\n{outcome}");
    }
}

#[test]
fn a_directory_that_cannot_be_is_an_error() {
    let dir = "/proc/no/such/directory";
    let outcome = job(2, Path::new(dir)).run();
    outcome.assert_fails(&["SHMEM_TRACE", dir, "name a directory"]);
}
