//! Tests of the installed `shmem-perf` in jobs: what it measures, what it writes, and how it fails.
//!
//! No test depends on how fast anything is.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use shmem_perf::record::{Ended, FORMAT, Measure, PeInfo, Record, Series};
use testkit::{Job, Outcome, eventually, kill, prefix};

fn program() -> PathBuf {
    prefix().join("bin/shmem-perf")
}

/// Returns a job of `n` PEs that measures for about a second.
fn short(n: usize, words: &[&str]) -> Job {
    let words = ["--time", "1"].iter().chain(words);
    words.fold(Job::new(program()).n(n), |job, word| job.arg(word))
}

/// Returns the path of a file for a test, after removing what an earlier run left there.
fn file(name: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("shmem-perf");
    fs::create_dir_all(&dir).expect("a directory for tests");
    let file = dir.join(name);
    _ = fs::remove_file(&file);
    file
}

/// Runs a job that writes a record, and checks that the record is complete and plausible.
#[track_caller]
fn record(name: &str, job: Job) -> (Record, Outcome) {
    let file = file(name);
    let outcome = job.arg("--output").arg(file.display()).run();
    assert_eq!(outcome.code(), 0, "{outcome}");
    let record = read(&file);
    assert!(record.complete && record.format == FORMAT);
    record.series.iter().for_each(plausible);
    (record, outcome)
}

fn read(file: &Path) -> Record {
    serde_json::from_str(&fs::read_to_string(file).expect("a file")).expect("a record")
}

/// Checks that sizes and percentiles ascend, and that each median is in its interval.
#[track_caller]
fn plausible(series: &Series) {
    let name = &series.operation;
    assert!(!series.points.is_empty(), "{name}");
    assert!(
        series.points.is_sorted_by_key(|point| point.nbytes),
        "{name}"
    );
    for point in &series.points {
        let s = &point.summary;
        let growing = [s.min, s.p50, s.p90, s.p99, s.p999.unwrap_or(s.p99), s.max];
        assert!(growing.is_sorted() && s.n > 0, "{name}: {s:?}");
        let holds = |(low, high): (f64, f64)| low <= s.p50 && s.p50 <= high;
        assert!(
            s.interval.is_none_or(holds) && !s.batches.is_empty(),
            "{name}: {s:?}"
        );
        assert_eq!(s.interval.is_some(), s.batches.len() >= 6, "{name}: {s:?}");
        assert_eq!(s.p999.is_some(), s.n >= 1000, "{name}: {s:?}");
        assert!(
            s.min > 0.0 || series.measure == Measure::Overlap,
            "{name}: {s:?}"
        );
    }
}

fn find<'a>(record: &'a Record, measure: Measure, operation: &str) -> Option<&'a Series> {
    record
        .series
        .iter()
        .find(|s| s.measure == measure && s.operation == operation)
}

#[track_caller]
fn has(record: &Record, measure: Measure, operations: &[&str]) {
    for operation in operations {
        assert!(
            find(record, measure, operation).is_some(),
            "{measure:?} of {operation}"
        );
    }
}

/// Checks that the job failed with exactly one message of the program. `oshrun` may print another
/// one about the end of the job.
#[track_caller]
fn refused(outcome: &Outcome, words: &[&str]) {
    assert_ne!(outcome.code(), 0, "{outcome}");
    let messages: Vec<&str> = outcome
        .stderr
        .lines()
        .filter(|line| line.starts_with("shmem-perf"))
        .collect();
    assert_eq!(messages.len(), 1, "not exactly one message\n{outcome}");
    for word in words {
        assert!(outcome.stderr.contains(word), "{word}\n{outcome}");
    }
}

fn two_pes_measure_what_one_wants_to_know() {
    let (record, outcome) = record("two.json", short(2, &["--growth", "64"]));
    assert_eq!(record.job.pes.len(), 2);
    has(
        &record,
        Measure::Latency,
        &["put", "get", "p", "g", "fetch_add", "put_signal round trip"],
    );
    has(
        &record,
        Measure::Latency,
        &["store", "memcpy to peer", "cache line round trip"],
    );
    has(&record, Measure::Bandwidth, &["put_nbi", "get_nbi"]);
    has(&record, Measure::BidirectionalBandwidth, &["put_nbi"]);
    has(&record, Measure::MessageRate, &["put", "p"]);
    has(&record, Measure::Overlap, &["put_nbi"]);
    let collectives = [
        "barrier_all",
        "sum_reduce",
        "broadcast",
        "fcollect",
        "alltoall",
    ];
    has(&record, Measure::Collective, &collectives);
    has(&record, Measure::Event, &["init"]);
    assert!(record.clock.overhead_ns > 0.0);
    let latency = find(&record, Measure::Latency, "put").expect("it is there");
    let sizes: Vec<u64> = latency.points.iter().map(|point| point.nbytes).collect();
    assert_eq!(sizes, [8, 512, 32768, 2097152]);
    for heading in [
        "Latency by size",
        "Message rate",
        "Collectives by size",
        "which are subtracted",
    ] {
        assert!(outcome.stdout.contains(heading), "{heading}\n{outcome}");
    }
    assert_eq!(
        record.library.path(),
        "shared memory: all PEs are on one node"
    );
    assert!(
        outcome
            .stdout
            .contains("\ntransport: shared memory: all PEs"),
        "{outcome}"
    );
    let (_, answers) = outcome
        .stdout
        .split_once("what is possible here")
        .expect("answers");
    for part in ["memcpy to peer", "Likely reasons", "share memory"] {
        assert!(answers.contains(part), "{part}\n{outcome}");
    }
    // There is no terminal, so there is no bar.
    assert!(
        outcome.stderr.is_empty() && !outcome.stdout.contains('\r'),
        "{outcome}"
    );
}

fn one_pe_measures_with_itself_and_says_so() {
    let job = short(
        1,
        &[
            "--operations",
            "put,put_signal,sum_reduce",
            "--max-bytes",
            "64",
        ],
    );
    let (record, outcome) = record("one.json", job);
    has(&record, Measure::Latency, &["put", "put_signal round trip"]);
    assert!(outcome.stdout.contains("measures with itself"), "{outcome}");
}

fn four_pes_measure_in_pairs_over_tcp() {
    let words = [
        "--operations",
        "put,p,add,barrier_all,fcollect",
        "--max-bytes",
        "64",
        "--pairs",
        "all",
    ];
    let job = short(4, &words)
        .env("SHMEM_ONNODE", "off")
        .env("SHMEM_TRANSPORT", "tcp");
    let (record, _) = record("pairs.json", job);
    has(
        &record,
        Measure::Latency,
        &["put", "p round trip", "socket round trip"],
    );
    has(&record, Measure::BidirectionalBandwidth, &["put"]);
    let put = find(&record, Measure::MessageRate, "put").expect("it is there");
    assert_eq!((put.shape.pairs.as_str(), put.shape.n_pes), ("all", 4));
}

fn a_target_can_compute_meanwhile() {
    let words = [
        "--operations",
        "fetch_add",
        "--measures",
        "latency,bidirectional",
        "--target",
    ];
    let words = [&words[..], &["computes"]].concat();
    let job = short(4, &words)
        .arg("--pairs")
        .arg("all")
        .env("SHMEM_VIRTUAL_NODES", "2");
    let (record, outcome) = record("computes.json", job.env("SHMEM_TRANSPORT", "tcp"));
    let shape = &find(&record, Measure::Latency, "fetch_add")
        .expect("it is there")
        .shape;
    assert!(shape.target_computes, "{outcome}");
}

fn a_record_says_how_to_do_it_again() {
    let words = ["--operations", "p", "--measures", "latency", "--bind"];
    let job = short(2, &words)
        .env("SHMEM_VIRTUAL_NODES", "2")
        .env("SHMEM_HOST_LIMIT", "20");
    let (record, _) = record("again.json", job);
    let setting = |name: &str| {
        let found = record
            .settings
            .iter()
            .find(|setting| setting.name == name)?;
        Some((found.value.as_str(), found.origin.as_str()))
    };
    assert_eq!(setting("SHMEM_VIRTUAL_NODES"), Some(("2", "environment")));
    assert_eq!(setting("SHMEM_HOST_LIMIT"), Some(("20", "environment")));
    assert_eq!(setting("SHMEM_ONNODE"), Some(("on", "default")));
    // The library reports the transport, since no setting names it.
    let transport = record
        .library
        .transport
        .as_deref()
        .expect("PEs that share no memory have one");
    assert!(["tcp", "ucx", "ofi"].contains(&transport), "{transport}");
    assert!(
        record
            .library
            .below
            .iter()
            .any(|found| found.starts_with("tcp: ")),
        "{record:?}"
    );
    let [launcher, rest @ ..] = record.launcher.as_slice() else {
        panic!("no launcher")
    };
    assert!(
        launcher.ends_with("oshrun") && rest.contains(&"-n".to_owned()),
        "{launcher} {rest:?}"
    );
    let nodes: Vec<Option<u32>> = record.job.pes.iter().map(|pe| pe.node).collect();
    assert_eq!(nodes, [Some(0), Some(1)], "virtual nodes share no memory");
    if record.job.hosts[0].n_cpus >= 2 {
        let is_one = |pe: &PeInfo| pe.cpus.parse::<u32>().is_ok();
        let [first, second] = record.job.pes.as_slice() else {
            panic!("two PEs")
        };
        assert!(
            is_one(first) && is_one(second) && first.cpus != second.cpus,
            "{:?}",
            record.job
        );
    }
    assert!(
        !record.job.hosts[0].numa_nodes.is_empty(),
        "{:?}",
        record.job.hosts
    );
}

fn every_operation_can_be_measured() {
    let words = [
        "--operations",
        "all",
        "--max-bytes",
        "16",
        "--growth",
        "2",
        "--pairs",
        "neighbors",
    ];
    let words = words.into_iter().chain(["--team-sizes", "1,2,3"]);
    let (record, _) = record("all.json", short(3, &words.collect::<Vec<_>>()));
    has(
        &record,
        Measure::Latency,
        &["iget", "fetch_xor", "lock", "fetch_add_nbi"],
    );
    let team = |size: u32| {
        let mut sums = record
            .series
            .iter()
            .filter(|series| series.operation == "sum_reduce");
        sums.any(|series| series.shape.team_size == Some(size))
    };
    assert!(team(1) && team(2) && team(3));
}

fn collectives_on_active_sets_have_the_sizes_that_are_listed() {
    let words = [
        "--operations",
        "max_to_all,broadcast64,fcollect64,barrier_all",
    ];
    let words = words
        .into_iter()
        .chain(["--measures", "collective", "--sizes", "8,8k"]);
    let (record, _) = record("sets.json", short(3, &words.collect::<Vec<_>>()));
    for operation in [
        "max_to_all",
        "broadcast64 and barrier_all",
        "fcollect64 and barrier_all",
    ] {
        let series = find(&record, Measure::Collective, operation).expect(operation);
        let sizes: Vec<u64> = series.points.iter().map(|point| point.nbytes).collect();
        let fits: &[u64] = if operation.starts_with("fcollect") {
            &[8]
        } else {
            &[8, 8192]
        };
        assert_eq!(sizes, fits, "{operation}");
    }
    has(&record, Measure::Collective, &["barrier_all"]);
}

fn threads_contexts_and_static_data_can_be_measured() {
    for words in [
        &["--threads", "2", "--contexts", "3"][..],
        &["--threads", "3", "--contexts", "2"],
        &["--contexts", "2", "--memory", "static"],
        &["--pairs", "random", "--seed", "5", "--window", "4"],
        &["--target", "computes"],
    ] {
        let common = [
            "--operations",
            "put_nbi,fetch_add,iput",
            "--max-bytes",
            "64",
        ];
        let (record, _) = record("threads.json", short(2, &[&common, words].concat()));
        has(&record, Measure::MessageRate, &["put_nbi", "fetch_add"]);
    }
}

fn the_thread_level_is_recorded() {
    let levels = [
        (None, "single"),
        (Some("--thread-multiple"), "multiple"),
        (Some("--threads=2"), "multiple"),
    ];
    for (flag, expected) in levels {
        let words = ["--operations", "put_nbi,max_reduce", "--sizes", "8"]
            .into_iter()
            .chain(flag);
        let (record, _) = record("level.json", short(2, &words.collect::<Vec<_>>()));
        has(&record, Measure::Collective, &["max_reduce"]);
        assert_eq!(record.library.thread_level.as_deref(), Some(expected));
    }
}

fn a_matrix_has_each_pe_with_each_other_one() {
    // With a limit of 60 s, since on a busy machine a short time may be over before the last pair.
    let words = ["--matrix", "--time", "60"];
    let job = words
        .iter()
        .fold(Job::new(program()).n(4), |job, word| job.arg(word));
    let (record, outcome) = record("matrix.json", job);
    assert!(record.series.is_empty());
    let measures: Vec<Measure> = record
        .matrices
        .iter()
        .map(|matrix| matrix.measure)
        .collect();
    assert_eq!(measures, [Measure::Latency, Measure::Bandwidth]);
    for matrix in &record.matrices {
        for (from, row) in matrix.values.iter().enumerate() {
            let own: Vec<bool> = row.iter().map(Option::is_none).collect();
            let expected: Vec<bool> = (0..4).map(|to| to == from).collect();
            assert_eq!(own, expected, "{matrix:?}");
        }
    }
    assert!(outcome.stdout.contains("from \\ to"), "{outcome}");
}

fn a_table_of_values_has_a_line_for_each_point() {
    let file = file("values.csv");
    let job = short(
        2,
        &[
            "--operations",
            "put",
            "--measures",
            "latency",
            "--max-bytes",
            "512",
        ],
    );
    let outcome = job.arg("-o").arg(file.display()).run();
    assert_eq!(outcome.code(), 0, "{outcome}");
    let text = fs::read_to_string(file).expect("a file");
    let columns: Vec<usize> = text.lines().map(|line| line.split(',').count()).collect();
    assert!(columns.iter().all(|&n| n == columns[0]), "{text}");
    let units: Vec<&str> = text
        .lines()
        .filter_map(|line| line.rsplit(',').next())
        .collect();
    assert!(
        units[0] == "unit" && units[1..].iter().all(|unit| *unit == "ns"),
        "{text}"
    );
    assert_eq!(
        text.lines()
            .filter(|line| line.starts_with("latency,put,false"))
            .count(),
        4,
        "{text}"
    );
}

fn moved_data_is_checked() {
    for words in [
        &[
            "--operations",
            "all",
            "--sizes",
            "8,24",
            "--pairs",
            "neighbors",
        ][..],
        &[
            "--operations",
            "put,get,p,add,iput,fetch_xor",
            "--sizes",
            "8,24",
            "--threads",
            "2",
        ],
        &[
            "--operations",
            "put,iget,fetch_or",
            "--sizes",
            "24",
            "--memory",
            "static",
        ],
    ] {
        let (record, outcome) = record(
            "validated.json",
            short(3, &[words, &["--validate"]].concat()),
        );
        assert!(
            record.validated && outcome.stdout.contains("was checked"),
            "{outcome}"
        );
    }
}

/// A library to preload, which does not move the last of 24 bytes, and adds 1 too much.
const FAULTY: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#define REAL(NAME, TYPE) ((TYPE)dlsym(RTLD_NEXT, #NAME))
typedef void move(void *, const void *, size_t, int);
void shmem_putmem(void *to, const void *from, size_t n, int pe)
{
    REAL(shmem_putmem, move *)(to, from, n - (n == 24), pe);
}
void shmem_getmem(void *to, const void *from, size_t n, int pe)
{
    REAL(shmem_getmem, move *)(to, from, n - (n == 24), pe);
}
long shmem_long_atomic_fetch_add(long *to, long value, int pe)
{
    return REAL(shmem_long_atomic_fetch_add, long (*)(long *, long, int))(to, value + 1, pe);
}
int shmem_long_sum_reduce(void *team, long *to, const long *from, size_t n)
{
    const int status = REAL(shmem_long_sum_reduce, int (*)(void *, long *, const long *, size_t))(team, to, from, n);
    to[n - 1]++;
    return status;
}
"#;

fn data_that_was_not_moved_ends_the_job() {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let faulty = testkit::compile_text("faulty.c", FAULTY, dir, &["-shared", "-fPIC"]);
    for operation in ["put", "get", "fetch_add", "sum_reduce"] {
        let job = |words: &[&str]| {
            let job = Job::new("/usr/bin/env").n(2);
            let job = job
                .arg(format!("LD_PRELOAD={}", faulty.display()))
                .arg(program().display());
            let common = ["--time", "0.3", "--sizes", "24", "--operations", operation];
            common
                .iter()
                .chain(words)
                .fold(job, |job, word| job.arg(word))
                .run()
        };
        assert_eq!(
            job(&[]).code(),
            0,
            "without --validate the data is not checked"
        );
        let outcome = job(&["--validate"]);
        assert_ne!(outcome.code(), 0, "{outcome}");
        let names = [operation, "did not move what it should", "PE", "is wrong"];
        assert!(
            names.iter().all(|part| outcome.stderr.contains(part)),
            "{outcome}"
        );
    }
}

fn what_is_repeated_and_kept_can_be_chosen() {
    let samples = file("samples.csv");
    let words = [
        "--operations",
        "put,barrier_all,fcollect",
        "--measures",
        "latency,collective",
    ];
    let words = [
        &words[..],
        &["--sizes", "8k", "--warm-up", "10", "--iterations", "40"],
    ]
    .concat();
    let job = short(2, &words)
        .arg("--off-cache")
        .arg("4m")
        .arg("--samples")
        .arg(samples.display());
    let job = job.env("SHMEM_ONNODE", "off").env("SHMEM_TRANSPORT", "tcp");
    let (record, _) = record("counted.json", job);
    let text = fs::read_to_string(samples).expect("a file of values");
    for (measure, name) in [
        (Measure::Latency, "put"),
        (Measure::Collective, "barrier_all"),
    ] {
        let summary = &find(&record, measure, name).expect(name).points[0].summary;
        assert_eq!((summary.n, summary.ended), (40, Ended::Counted), "{name}");
        let is_it = |line: &&str| line.split(',').nth(1) == Some(name);
        let values: Vec<f64> = text
            .lines()
            .filter(is_it)
            .map(|line| {
                line.rsplit(',')
                    .next()
                    .and_then(|v| v.parse().ok())
                    .expect("a value")
            })
            .collect();
        let least = values.iter().copied().fold(f64::MAX, f64::min);
        assert_eq!((values.len(), least), (40, summary.min), "{name}");
    }
    for series in record
        .series
        .iter()
        .filter(|series| series.measure == Measure::Collective)
    {
        let (least, mean, most) = series.points[0].by_pe.expect("each PE's mean");
        assert!(0.0 < least && least <= mean && mean <= most, "{series:?}");
    }
}

fn what_does_not_fit_is_refused_once() {
    for (words, parts) in [
        (&["--bogus"][..], &["--bogus"][..]),
        (
            &["--operations", "teleport"],
            &["teleport", "there is no such operation", "get_nbi"],
        ),
        (
            &["--team-sizes", "9"],
            &["--team-sizes 9", "1 to 3 members"],
        ),
        (&["--pair", "0,3"], &["--pair 0,3", "3 PEs"]),
        (
            &["--measures", "overlap", "--operations", "p"],
            &["nothing is left"],
        ),
        (
            &["-o", "/nowhere/record.json"],
            &["/nowhere/record.json", "cannot be written"],
        ),
        (&["-o", "record.xml"], &["record.xml", ".json or .csv"]),
        (
            &["--samples", "/nowhere/values.csv"],
            &["/nowhere/values.csv", "cannot be written"],
        ),
        (
            &["--validate", "--off-cache", "1m"],
            &["--validate", "--off-cache"],
        ),
        (
            &["--memory", "static", "--off-cache", "1m"],
            &["--off-cache needs --memory heap"],
        ),
    ] {
        refused(&short(3, words).run(), parts);
    }
    refused(
        &Job::new(program()).n(1).arg("--matrix").run(),
        &["--matrix", "2 PEs"],
    );
}

fn a_full_disk_is_reported() {
    refused(
        &short(2, &["-o", "/dev/full"]).run(),
        &["/dev/full", "No space left"],
    );
    for words in ["--time 0.2 --operations p", "--help", "build --show"] {
        let command = format!("{} {words} > /dev/full", program().display());
        let outcome = Job::direct("/bin/sh").arg("-c").arg(command).run();
        refused(
            &outcome,
            &["standard output cannot be written", "No space left"],
        );
    }
}

fn what_was_measured_outlives_a_peer() {
    let file = file("death.json");
    let job = Job::new(program())
        .n(2)
        .arg("--time")
        .arg(600)
        .arg("-o")
        .arg(file.display());
    let job = job.timeout(Duration::from_secs(100)).start();
    eventually("a series is written", || {
        let text = fs::read_to_string(&file).unwrap_or_default();
        serde_json::from_str::<Record>(&text).is_ok_and(|record| !record.series.is_empty())
    });
    let processes = job.processes();
    let is_pe = |command: &str| command.starts_with(&program().display().to_string());
    let pe = processes
        .iter()
        .rfind(|process| is_pe(&process.command))
        .expect("a PE");
    kill(pe.pid);
    let outcome = job.finish();
    assert_ne!(outcome.code(), 0, "{outcome}");
    let record = read(&file);
    assert!(!record.complete && !record.series.is_empty());
    record.series.iter().for_each(plausible);
}

fn help_needs_no_job() {
    for words in [&["--help"][..], &["--version"], &["build", "--help"]] {
        let outcome = words
            .iter()
            .fold(Job::direct(program()), |job, word| job.arg(word))
            .run();
        assert_eq!(outcome.code(), 0, "{outcome}");
        assert!(
            outcome.stdout.contains("shmem-perf") && outcome.stderr.is_empty(),
            "{outcome}"
        );
    }
}

fn it_can_be_built_again() {
    let program = file("again");
    let build = Job::direct(self::program())
        .arg("build")
        .arg("-o")
        .arg(program.display());
    let outcome = build
        .arg("--oshcc")
        .arg(prefix().join("bin/oshcc").display())
        .run();
    assert_eq!(outcome.code(), 0, "{outcome}");
    let words = ["--time", "0.2", "--operations", "p"];
    let outcome = words
        .iter()
        .fold(Job::new(&program).n(2), |job, word| job.arg(word))
        .run();
    assert_eq!(outcome.code(), 0, "{outcome}");
    let missing = Job::direct(self::program())
        .arg("build")
        .arg("--oshcc")
        .arg("/no/oshcc")
        .run();
    refused(&missing, &["/no/oshcc", "cannot be started"]);
}

testkit::module_tests!(
    two_pes_measure_what_one_wants_to_know,
    one_pe_measures_with_itself_and_says_so,
    four_pes_measure_in_pairs_over_tcp,
    a_target_can_compute_meanwhile,
    a_record_says_how_to_do_it_again,
    every_operation_can_be_measured,
    collectives_on_active_sets_have_the_sizes_that_are_listed,
    threads_contexts_and_static_data_can_be_measured,
    the_thread_level_is_recorded,
    a_matrix_has_each_pe_with_each_other_one,
    a_table_of_values_has_a_line_for_each_point,
    moved_data_is_checked,
    data_that_was_not_moved_ends_the_job,
    what_is_repeated_and_kept_can_be_chosen,
    what_does_not_fit_is_refused_once,
    a_full_disk_is_reported,
    what_was_measured_outlives_a_peer,
    help_needs_no_job,
    it_can_be_built_again,
);
