//! shmem-verify: the library passes, and the families of planted faults do not.

use std::fs;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::Value;
use testkit::{Job, Outcome, prefix};

/// Faults of tests/faults/planted.c, and the family that finds each.
/// Faults by which a program of a family has a wrong result, with the family.
const WRONG: [(&str, &str); 19] = [
    ("WRONG_VERSION", "setup"),
    ("CALLOC_NOT_ZERO", "heap"),
    ("ALIGNS_TO_16_BYTES", "heap"),
    ("PUT_A_BYTE_SHORT", "statics"),
    ("PUT_A_BYTE_SHORT", "rma"),
    ("GET_NBI_A_BYTE_SHORT", "rma"),
    ("STRIDE_OF_ONE", "rma"),
    ("ADD_NOT_ATOMIC", "amo"),
    ("FETCHES_THE_NEW_VALUE", "amo"),
    ("SWAPS_WITHOUT_COMPARING", "amo"),
    ("SIGNAL_BEFORE_DATA", "signals"),
    ("TEST_ALL_IS_ALWAYS_TRUE", "waits"),
    ("CONTEXT_HAS_NO_TEAM", "contexts"),
    ("TRANSLATES_TO_ITSELF", "teams"),
    ("AXES_SWAPPED", "teams"),
    ("REDUCES_ANOTHER_TYPE", "collectives"),
    ("ROOT_GETS_NO_COPY", "collectives"),
    ("SCAN_LEAVES_OUT_ITSELF", "collectives"),
    ("ALLTOALL_A_BLOCK_SHORT", "collectives"),
];
/// Faults by which a program may hang instead.
const HANGING: [(&str, &str); 3] = [
    ("SIGNAL_SETS_INSTEAD_OF_ADDING", "signals"),
    ("WAIT_RETURNS_AT_ONCE", "waits"),
    ("LOCK_LETS_TWO_IN", "locks"),
];

fn job() -> Job {
    job_of(4)
}

fn job_of(n: usize) -> Job {
    Job::new(prefix().join("bin/shmem-verify"))
        .n(n)
        // The programs take seconds, and minutes beside many processes that compute. The limit of a
        // family is the smaller one, so that shmem-verify names the family that has reached it.
        .timeout(Duration::from_secs(600))
        .args(["--limit", "500"])
}

/// Makes PEs share no memory and use TCP.
fn off_node(job: Job) -> Job {
    job.env("SHMEM_TRANSPORT", "tcp").env("SHMEM_ONNODE", "off")
}

fn assert_right(outcome: &Outcome) {
    assert!(outcome.status.success(), "{outcome}");
    let verdict = "Everything that was verified is right.\n";
    assert!(outcome.stdout.ends_with(verdict), "{outcome}");
}

fn read_record(path: &Path) -> Value {
    let text = fs::read_to_string(path).expect("a record");
    serde_json::from_str(&text).expect("JSON")
}

/// Returns a field that is a list.
fn list<'a>(record: &'a Value, key: &str) -> &'a [Value] {
    record[key].as_array().expect("a list")
}

#[test]
fn the_library_is_right_on_a_node() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("record.json");
    let outcome = job().arg("--quick").arg("-o").arg(path.display()).run();
    assert_right(&outcome);
    // Nothing else is left beside the record.
    assert_eq!(fs::read_dir(dir.path()).expect("it").count(), 1);

    let record = read_record(&path);
    assert_eq!(record["pes"], 4);
    assert_eq!(record["nodes"], 1);
    assert!(record["hosts"].is_null());
    let transport = "shared memory: all PEs are on one node";
    assert_eq!(record["transport"], transport);

    let programs = list(&record, "programs");
    assert!(programs.len() > 15, "{record}");
    let are_right = programs.iter().all(|row| row["verdict"] == "right");
    assert!(are_right, "{record}");

    let timings = list(&record, "performance");
    assert_eq!(timings.len(), 10, "{record}");
    for timing in timings {
        assert!(timing["nanoseconds"].as_f64() > Some(0.0), "{record}");
    }

    findings_name_no_host(list(&record["doctor"], "sections"));
}

/// Checks the sections of what the doctor finds: one of the host and one of each transport, without
/// names and addresses of hosts.
fn findings_name_no_host(sections: &[Value]) {
    let titles: Vec<&str> = sections
        .iter()
        .map(|section| section["title"].as_str().expect("a title"))
        .collect();
    let (host, transports) = titles.split_first().expect("a section");
    assert!(host.starts_with("host HOST: Rushmem "), "{titles:?}");
    for title in transports {
        assert!(title.starts_with("transport "), "{titles:?}");
    }

    let tcp = titles
        .iter()
        .position(|title| title.starts_with("transport tcp: "))
        .expect("TCP");
    let tcp = sections[tcp].to_string();
    assert!(!tcp.contains("127.0.0.1"), "{tcp}");
}

#[test]
fn the_library_is_right_over_tcp() {
    assert_right(&off_node(job().arg("--quick")).run());
}

#[test]
fn the_library_is_right_for_programs_without_threads() {
    let job = job().args(["--single", "--only", "rma,amo,waits"]);
    assert_right(&job.run());
}

#[test]
fn the_litmus_tests_print_how_often_each_outcome_was_seen() {
    for job in [job(), off_node(job())] {
        let outcome = job.arg("--litmus=20").run();
        assert_right(&outcome);

        for memory in ["heap", "static", "buffer"] {
            let wrc = "WRC: put | get, put | wait, load";
            let is_printed = outcome.lines().any(|line| {
                let is_of_memory = line.starts_with(wrc) && line.contains(memory);
                is_of_memory && line.ends_with(" 0 of       20  forbidden by Rushmem")
            });
            assert!(is_printed, "{outcome}");
        }
        assert!(!outcome.stdout.contains("not run"), "{outcome}");
    }
}

/// The other tests run.
#[test]
fn litmus_tests_that_need_more_pes_say_so() {
    let outcome = job_of(2).arg("--litmus=20").run();
    assert_right(&outcome);

    let has = |name: &str, verdict: &str| {
        let mut lines = outcome.lines();
        lines.any(|line| line.starts_with(name) && line.ends_with(verdict))
    };
    assert!(has("WRC: ", " 0  not run: it needs 3 PEs"), "{outcome}");
    assert!(has("IRIW: ", " 0  not run: it needs 4 PEs"), "{outcome}");
    let of_two = "SB: put, quiet, get";
    assert!(has(of_two, "21  forbidden by OpenSHMEM"), "{outcome}");
}

#[test]
fn a_forbidden_outcome_is_wrong() {
    let outcome = planted_job("SIGNAL_OVERTAKES_ITS_WORD", 2)
        .arg("--litmus=20")
        .run();
    assert_eq!(outcome.code(), 1, "{outcome}");

    let line = "litmus: 3 checks failed on 1 PEs, first on PE 0: MP: put with signal | wait, load: \
                OpenSHMEM forbids \"the old x\", which was seen";
    assert!(outcome.stdout.contains(line), "{outcome}");
    let broken = "BROKEN: OpenSHMEM forbids it";
    assert_eq!(outcome.stdout.matches(broken).count(), 3, "{outcome}");
}

#[test]
fn a_forbidden_outcome_in_a_buffer_alone_is_wrong() {
    let outcome = planted_job("SIGNAL_OVERTAKES_ITS_BUFFER", 2)
        .arg("--litmus=20")
        .run();
    assert_eq!(outcome.code(), 1, "{outcome}");

    let broken = outcome.lines().filter(|line| line.contains("BROKEN"));
    let broken = broken.collect::<Vec<_>>();
    assert_eq!(broken.len(), 1, "{outcome}");
    assert!(
        broken[0].starts_with("MP: put with signal | wait, load "),
        "{outcome}"
    );
    assert!(broken[0].contains(" buffer "), "{outcome}");
}

#[test]
fn a_record_names_hosts_on_request() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("record.json");
    let job = job().args(["--only", "setup", "--hosts", "-o"]);
    assert_right(&job.arg(path.display()).run());

    let record = read_record(&path);
    assert_eq!(list(&record, "hosts").len(), 4);
}

#[test]
fn what_cannot_be_done_is_refused() {
    let family = job().args(["--only", "rma,nothing"]).run();
    assert_eq!(family.code(), 2, "{family}");
    family.assert_fails(&[
        "no family has the name nothing",
        "setup, heap, statics, rma",
    ]);

    let option = job().arg("--fast").run();
    assert_eq!(option.code(), 2, "{option}");
    option.assert_fails(&["not an option: --fast"]);

    for time in ["x", "0", "-1", "2q", "nan"] {
        let limit = job().args(["--limit", time]).run();
        assert_eq!(limit.code(), 2, "{limit}");
        limit.assert_fails(&[
            "--limit must be a time above 0",
            &format!("and not {time};"),
        ]);
    }

    for rounds in ["0", "x", "1x", "-1", "9999999999"] {
        let litmus = job().arg(format!("--litmus={rounds}")).run();
        assert_eq!(litmus.code(), 2, "{litmus}");
        let words = "--litmus must be a number of rounds from 1 to 1000000000, and not";
        litmus.assert_fails(&[words, rounds]);
    }

    let heap = job().env("SHMEM_SYMMETRIC_SIZE", "1m").run();
    assert_eq!(heap.code(), 2, "{heap}");
    heap.assert_fails(&["the programs need 32 MiB: set SHMEM_SYMMETRIC_SIZE=64m"]);
}

/// A device that is full stays what it is.
#[test]
fn a_record_on_a_full_disk_is_an_error() {
    let full = "/dev/full";
    let outcome = job().args(["--only", "setup", "-o", full]).run();
    assert_eq!(outcome.code(), 1, "{outcome}");
    let words = "the record /dev/full could not be written: No space left on device";
    assert!(outcome.stderr.contains(words), "{outcome}");

    let kind = fs::metadata(full).expect("it").file_type();
    assert!(kind.is_char_device());
}

#[test]
fn a_record_in_no_directory_is_an_error() {
    let job = job().args(["--only", "setup", "-o", "/nowhere/record.json"]);
    let outcome = job.run();
    assert_eq!(outcome.code(), 1, "{outcome}");
    let reason = "No such file or directory";
    assert!(outcome.stderr.contains(reason), "{outcome}");
}

/// Of two runs at once, the last one's record remains, and it is complete.
#[test]
fn two_runs_in_one_directory_do_not_mix_their_records() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("record.json");
    std::thread::scope(|scope| {
        for n in [2, 3] {
            let job = job_of(n).args(["--only", "setup,heap", "-o"]);
            let job = job.arg(path.display());
            scope.spawn(move || assert_right(&job.run()));
        }
    });

    let record = read_record(&path);
    assert!(record["pes"] == 2 || record["pes"] == 3, "{record}");
    assert_eq!(fs::read_dir(dir.path()).expect("it").count(), 1);
}

/// PE 0 measures with the first PE whose memory it cannot map.
#[test]
fn a_record_has_the_times_of_the_network() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("record.json");
    let outcome = job()
        .env("SHMEM_TRANSPORT", "tcp")
        .env("SHMEM_VIRTUAL_NODES", 2)
        .args(["--only", "setup", "-o"])
        .arg(path.display())
        .run();
    assert_right(&outcome);
    let timing = "put_signal round trip";
    assert!(outcome.stdout.contains(timing), "{outcome}");

    let record = read_record(&path);
    let put = list(&record, "performance")
        .iter()
        .find(|row| row["operation"] == "put")
        .expect("a put");
    assert_eq!(put["peer"], 2, "{record}");
    assert!(put["nanoseconds"].as_f64() > Some(0.0), "{record}");
}

#[test]
fn an_odd_number_of_pes_is_right() {
    assert_right(&job_of(3).arg("--quick").run());
}

/// What needs the refused thread level is not there, and the rest is verified.
#[test]
fn a_library_that_refuses_a_thread_level_is_verified_without_it() {
    let job = planted_job("REFUSES_THREAD_MULTIPLE", 2);
    let outcome = job.args(["--only", "locks,amo"]).run();
    assert_right(&outcome);

    let not_there = "lock: not there: it needs the thread level SHMEM_THREAD_MULTIPLE";
    assert!(outcome.stdout.contains(not_there), "{outcome}");
    let is_verified = outcome.lines().any(|line| line.starts_with("amo "));
    assert!(is_verified, "{outcome}");
}

/// The transfers of more than 2 GiB need a heap that the default is not.
#[test]
fn what_needs_a_large_heap_is_not_there_without_one() {
    let outcome = job_of(2).args(["--only", "rma"]).run();
    assert_right(&outcome);
    let not_there = "beyond_2gib: not there: it needs SHMEM_SYMMETRIC_SIZE=2200m";
    assert!(outcome.stdout.contains(not_there), "{outcome}");
}

#[test]
#[ignore = "takes 5 GiB of memory; part of `cargo xtask test --full`"]
fn transfers_beyond_2_gib_are_right() {
    for job in [job_of(2), off_node(job_of(3))] {
        let outcome = job
            .env("SHMEM_SYMMETRIC_SIZE", "2200m")
            .args(["--only", "rma"])
            .run();
        assert_right(&outcome);
        assert!(!outcome.stdout.contains("not there"), "{outcome}");
    }
}

#[test]
fn one_pe_is_said_to_verify_little() {
    let outcome = job_of(1).args(["--only", "setup"]).run();
    assert!(outcome.status.success(), "{outcome}");
    let note = "One PE verifies little";
    assert!(outcome.stdout.contains(note), "{outcome}");
}

/// Compiles a library that replaces routines by wrong ones.
fn planted(fault: &str) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/faults/planted.c");
    let library = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{fault}.so"));
    let compiled = Command::new(prefix().join("bin/oshcc"))
        .args(["-shared", "-fPIC", "-w", &format!("-D{fault}")])
        .arg(source)
        .arg("-o")
        .arg(&library)
        .status();
    assert!(compiled.expect("oshcc").success(), "{fault}");
    library
}

/// Returns a job of the program with a fault.
fn planted_job(fault: &str, n: usize) -> Job {
    // Set by `env`, the variable is not one of oshrun, which would load the library, too.
    Job::new("/usr/bin/env")
        .n(n)
        .arg(format!("LD_PRELOAD={}", planted(fault).display()))
        .arg(prefix().join("bin/shmem-verify").display())
}

#[test]
fn planted_faults_are_found_by_their_families() {
    for (fault, family) in WRONG {
        let outcome = planted_job(fault, 4)
            .args(["--quick", "--only", family])
            .run();
        assert!(!outcome.status.success(), "{fault}: {outcome}");
        assert!(finds_wrong(&outcome, family), "{fault}: {outcome}");
    }

    for (fault, family) in HANGING {
        let outcome = planted_job(fault, 4)
            .args(["--quick", "--only", family, "--limit", "0.1m"])
            .run();
        assert!(!outcome.status.success(), "{fault}: {outcome}");
        let names_the_hang = outcome
            .stderr
            .contains(&format!("shmem-verify: {family}: "));
        let is_found = names_the_hang || finds_wrong(&outcome, family);
        assert!(is_found, "{fault}: {outcome}");
    }
}

/// Returns true if a program of the family had a wrong result.
fn finds_wrong(outcome: &Outcome, family: &str) -> bool {
    outcome
        .lines()
        .any(|line| line.starts_with(family) && line.contains(" wrong "))
}
