//! `SHMEM_TRACE`: the traces of a program whose operations are known, on a node and over TCP, of a
//! program that is killed, in a ring that is too small, and in a directory that cannot be created.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use rushmem_trace::layout::{Kind, TraceRecord};
use serde_json::Value;
use testkit::{Job, prefix, program, scenario};

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
    let job = job(N as usize, dir.path())
        .env("SHMEM_TRANSPORT", "tcp")
        .env(nodes.0, nodes.1);
    let outcome = job.run();
    outcome.assert_ok(N as usize);
    assert!(outcome.stderr.is_empty(), "{outcome}");
    let events = events(dir.path());

    let mut bytes = BTreeMap::new();
    for slice in events_of_phase(&events, "X") {
        assert_eq!(slice["pid"], node_of(pe(slice, N)) + 1, "{slice}");
        assert!(
            number(slice, "dur") >= 0.0 && number(slice, "ts") >= 0.0,
            "{slice}"
        );
        if ["put", "get", "amo"].contains(&text(slice, "cat")) {
            let args = &slice["args"];
            let [peer, nbytes] = ["peer", "bytes"].map(|key| args[key].as_u64().expect("a number"));
            *bytes.entry((pe(slice, N), peer)).or_insert(0) += nbytes;
        }
    }
    let expected = |me| [((me, me), TO_ITSELF), ((me, (me + 1) % N), TO_NEXT)];
    assert_eq!(bytes, (0..N).flat_map(expected).collect());

    for me in 0..N {
        let own = |phase, name| {
            let of_this_pe =
                events_of_phase(&events, phase).filter(move |event| pe(event, N) == me);
            of_this_pe
                .filter(move |event| event["name"] == name)
                .count()
        };
        let named = |name| own("X", name);
        let calls = [
            "shmem_putmem",
            "shmem_long_p",
            "shmem_long_g",
            "shmem_signal_wait_until",
        ];
        assert_eq!(calls.map(named), [4, 4, 3, 1], "PE {me}");
        // One call by the program, and one within the barriers.
        assert_eq!(named("shmem_quiet"), 2, "PE {me}");
        assert_eq!(own("M", "thread_name"), 1, "PE {me}");
        let in_flight = |phase| {
            events_of_phase(&events, phase)
                .filter(|event| pe(event, N) == me)
                .count()
        };
        assert_eq!([in_flight("b"), in_flight("e")], [IN_FLIGHT; 2], "PE {me}");
        assert_eq!(in_flight("C"), 2 * IN_FLIGHT, "PE {me}");
        let counter = events_of_phase(&events, "C").filter(|event| pe(event, N) == me);
        let last = counter.max_by(|a, b| number(a, "ts").total_cmp(&number(b, "ts")));
        assert_eq!(last.expect("a counter")["args"]["bytes"], 0, "PE {me}");
    }
    every_flow_goes_forward(&events, N);
}

/// Checks that each flow begins and ends once, not before its beginning, and that the signal for
/// which a PE waits is sent by the PE before it.
fn every_flow_goes_forward(events: &[Value], n: u64) {
    let flows = |phase| -> BTreeMap<u64, &Value> {
        events_of_phase(events, phase)
            .map(|event| (event["id"].as_u64().expect("a number"), event))
            .collect()
    };
    let (begins, ends) = (flows("s"), flows("f"));
    assert_eq!(
        begins.keys().collect::<Vec<_>>(),
        ends.keys().collect::<Vec<_>>()
    );
    let signals = begins
        .iter()
        .filter(|(_, begin)| text(begin, "name") == "put");
    let signaled: Vec<(u64, u64)> = signals
        .map(|(id, from)| (pe(from, n), pe(ends[id], n)))
        .collect();
    for me in 0..n {
        assert!(
            signaled.contains(&(me, (me + 1) % n)),
            "PE {me}: {signaled:?}"
        );
    }
    for (id, begin) in begins {
        // The clocks of nodes may differ by the time of a message.
        assert!(
            number(begin, "ts") <= number(ends[&id], "ts") + 1000.0,
            "{begin} {}",
            ends[&id]
        );
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

/// The root returns from each broadcast long before the other PE enters it.
#[test]
fn no_arrow_of_a_broadcast_goes_back_in_time() {
    let dir = tempfile::tempdir().expect("a directory");
    let job = Job::new(scenario!("late_in_broadcast.c")).n(2);
    job.env("SHMEM_TRACE", dir.path().display())
        .run()
        .assert_ok(2);
    let events = events(dir.path());
    let ends = |id: &Value| {
        events_of_phase(&events, "f")
            .find(|end| &end["id"] == id)
            .expect("an end")
    };
    let mut n_broadcasts = 0;
    for begin in events_of_phase(&events, "s") {
        let end = ends(&begin["id"]);
        assert!(number(begin, "ts") <= number(end, "ts"), "{begin} {end}");
        n_broadcasts += usize::from((pe(begin, 2), pe(end, 2)) == (0, 1));
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
    let job = Job::new(program!("scan.c"))
        .n(2)
        .env("SHMEM_TRACE", dir.path().display());
    let job = job
        .env("SHMEM_VIRTUAL_NODES", "1+1")
        .env("SHMEM_TRANSPORT", "tcp");
    job.env("SHMEM_SCAN_ALGORITHM", "direct").run().assert_ok(2);
    let job = rushmem_trace::job::JobTrace::of_dir(dir.path()).expect("a trace");
    let loads = job.pes.iter().any(|pe| {
        let scans = pe
            .records
            .iter()
            .filter(|call| pe.name(call).contains("_inscan"));
        let is_load = |copy: &&TraceRecord| {
            let is_from_other = copy.subject[0] == 1 && copy.peer == Some(1 - pe.pe);
            copy.kind == Kind::Move && is_from_other
        };
        let mut times = scans.filter_map(|call| Some(call.begin..call.end?));
        times.any(|time| {
            pe.records
                .iter()
                .filter(is_load)
                .any(|copy| time.contains(&copy.begin))
        })
    });
    assert!(loads, "no PE has loaded an operand of a scan");
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
        let own = |phase| events_of_phase(&events, phase).filter(move |event| pe(event, 2) == me);
        assert_eq!(own("X").count(), 16, "PE {me}");
        let said =
            own("i").filter(|event| text(event, "name").ends_with("older records were dropped"));
        assert_eq!(said.count(), 1, "PE {me}");
    }
    let outcome = Job::direct(prefix().join("bin/shmem-info")).arg("trace");
    let outcome = outcome.arg(dir.path().display()).run();
    assert!(
        outcome
            .stdout
            .contains("of the oldest records were dropped"),
        "{outcome}"
    );
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
    let job = Job::new(scenario!("death.c")).n(4).arg("late_kill");
    job.env("SHMEM_TRACE", dir.path().display())
        .run()
        .assert_fails(&["PE 1", "SIGKILL"]);
    assert!(
        !dir.path().join("trace.json").exists(),
        "the job did not finalize"
    );
    let job = rushmem_trace::job::JobTrace::of_dir(dir.path()).expect("a trace");
    assert_eq!(job.missing().n, 0);
    let begun = |pe: usize| {
        job.pes[pe]
            .records
            .iter()
            .any(|record| record.end.is_none())
    };
    assert!(
        [0, 2, 3].map(begun).contains(&true),
        "the others wait for PE 1"
    );
    assert!(!job.pes[1].records.is_empty(), "PE 1 did something");
    check_shown(dir.path());
    let slices = events(dir.path());
    assert!(
        events_of_phase(&slices, "B").next().is_some(),
        "a call that has not ended"
    );
}

/// Checks that `shmem-info trace` writes the trace that the job could not write, and the page.
fn check_shown(dir: &Path) {
    let info = || Job::direct(prefix().join("bin/shmem-info")).arg("trace");
    let outcome = info().arg(dir.display()).run();
    assert_eq!(outcome.code(), 0, "{outcome}");
    assert!(
        outcome.stdout.contains(" when its trace ended."),
        "{outcome}"
    );
    let is_short = |line: &str| line.len() <= 100 || line.contains("trace.json");
    assert!(outcome.stdout.lines().all(is_short), "{outcome}");
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
    let outcome = info().arg(empty.path().display()).run();
    assert_ne!(outcome.code(), 0, "{outcome}");
    assert!(outcome.stderr.contains("has no traces of PEs"), "{outcome}");
}

/// The trace has the places in the program of a call that waits and of the call that ends the wait.
#[test]
fn late_calls_are_found_in_the_program() {
    let dir = tempfile::tempdir().expect("a directory");
    let job = Job::new(scenario!("late.c", "-g"))
        .n(2)
        .env("SHMEM_TRACE", dir.path().display());
    let outcome = job.run();
    assert_eq!(
        (outcome.code(), outcome.stderr.as_str()),
        (0, ""),
        "{outcome}"
    );
    let events = events(dir.path());
    let at = |name| {
        let of_name = events.iter().filter(move |event| event["name"] == name);
        of_name
            .filter_map(|event| event["args"]["called at"].as_str())
            .collect::<Vec<_>>()
    };
    assert!(!at("shmem_barrier_all").is_empty(), "{events:?}");
    for place in at("shmem_barrier_all") {
        assert!(place.starts_with("late.c:"), "{place}");
    }
    let outcome = Job::direct(prefix().join("bin/shmem-info")).arg("trace");
    let outcome = outcome.arg(dir.path().display()).run();
    let text = outcome
        .stdout
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    // Which PE comes last depends on the start, too.
    for words in [" was in shmem_", " (late.c:", " made others wait "] {
        assert!(text.contains(words), "no {words:?}\n{outcome}");
    }
}

#[test]
fn a_directory_that_cannot_be_is_an_error() {
    let job = job(2, Path::new("/proc/no/such/directory"));
    job.run()
        .assert_fails(&["SHMEM_TRACE", "/proc/no/such/directory", "name a directory"]);
}
