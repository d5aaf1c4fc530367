//! shmem-verify: the library passes, and the families of planted faults do not.

use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use testkit::{Job, Outcome, prefix};

/// Faults of tests/faults/planted.c, and the family that finds each.
const FAULTS: [(&str, &str); 22] = [
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
    ("SIGNAL_SETS_INSTEAD_OF_ADDING", "signals"),
    ("WAIT_RETURNS_AT_ONCE", "waits"),
    ("TEST_ALL_IS_ALWAYS_TRUE", "waits"),
    ("LOCK_LETS_TWO_IN", "locks"),
    ("CONTEXT_HAS_NO_TEAM", "contexts"),
    ("TRANSLATES_TO_ITSELF", "teams"),
    ("AXES_SWAPPED", "teams"),
    ("REDUCES_ANOTHER_TYPE", "collectives"),
    ("ROOT_GETS_NO_COPY", "collectives"),
    ("SCAN_LEAVES_OUT_ITSELF", "collectives"),
    ("ALLTOALL_A_BLOCK_SHORT", "collectives"),
];

const TMP: &str = env!("CARGO_TARGET_TMPDIR");

fn job() -> Job {
    job_of(4)
}

fn job_of(n: usize) -> Job {
    let job = Job::new(prefix().join("bin/shmem-verify")).n(n);
    // The programs take seconds, and minutes beside many processes that compute.
    job.timeout(Duration::from_secs(600))
        .arg("--limit")
        .arg(500)
}

/// Makes PEs share no memory and use TCP.
fn off_node(job: Job) -> Job {
    job.env("SHMEM_TRANSPORT", "tcp").env("SHMEM_ONNODE", "off")
}

fn assert_right(outcome: &Outcome) {
    assert!(outcome.status.success(), "{outcome}");
    assert!(
        outcome
            .stdout
            .ends_with("Everything that was verified is right.\n"),
        "{outcome}"
    );
}

#[test]
fn the_library_is_right_on_a_node() {
    let dir = tempfile::tempdir().expect("a directory");
    let record = dir.path().join("record.json");
    let outcome = job().arg("--quick").arg("-o").arg(record.display()).run();
    assert_right(&outcome);

    let text = std::fs::read_to_string(&record).expect("a record");
    let record: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(record["pes"], 4);
    assert_eq!(record["nodes"], 1);
    assert!(record["hosts"].is_null());
    assert_eq!(
        record["transport"],
        "shared memory: all PEs are on one node"
    );
    // What the doctor finds, without names and addresses of hosts.
    let sections = record["doctor"]["sections"].as_array().expect("a list");
    let title = |i: usize| sections[i]["title"].as_str().expect("a title");
    assert!(title(0).starts_with("host HOST: Rushmem "), "{text}");
    let is_transport = |i: usize| title(i).starts_with("transport ");
    assert!((1..sections.len()).all(is_transport), "{text}");
    let is_of_tcp = |i: &usize| title(*i).starts_with("transport tcp: ");
    let tcp = (1..sections.len()).find(is_of_tcp).expect("TCP");
    assert!(!sections[tcp].to_string().contains("127.0.0.1"), "{text}");
    let programs = record["programs"].as_array().expect("a list");
    assert!(programs.len() > 15, "{text}");
    assert!(
        programs.iter().all(|row| row["verdict"] == "right"),
        "{text}"
    );
    let timings = record["performance"].as_array().expect("a list");
    assert_eq!(timings.len(), 10, "{text}");
    let is_measured = |row: &serde_json::Value| row["nanoseconds"].as_f64() > Some(0.0);
    assert!(timings.iter().all(is_measured), "{text}");
    // Nothing else is left beside the record.
    assert_eq!(std::fs::read_dir(dir.path()).expect("it").count(), 1);
}

#[test]
fn the_library_is_right_over_tcp() {
    assert_right(&off_node(job().arg("--quick")).run());
}

#[test]
fn the_library_is_right_for_programs_without_threads() {
    let job = job().arg("--single").arg("--only").arg("rma,amo,waits");
    assert_right(&job.run());
}

#[test]
fn a_record_names_hosts_on_request() {
    let dir = tempfile::tempdir().expect("a directory");
    let record = dir.path().join("record.json");
    let job = job().arg("--only").arg("setup").arg("--hosts");
    assert_right(&job.arg("-o").arg(record.display()).run());
    let text = std::fs::read_to_string(&record).expect("a record");
    let record: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(record["hosts"].as_array().expect("a list").len(), 4);
}

#[test]
fn what_cannot_be_done_is_refused() {
    let only = job().arg("--only").arg("rma,nothing").run();
    assert_eq!(only.code(), 2, "{only}");
    only.assert_fails(&[
        "no family has the name nothing",
        "setup, heap, statics, rma",
    ]);
    let option = job().arg("--fast").run();
    assert_eq!(option.code(), 2, "{option}");
    option.assert_fails(&["not an option: --fast"]);
    let heap = job().env("SHMEM_SYMMETRIC_SIZE", "1m").run();
    assert_eq!(heap.code(), 2, "{heap}");
    heap.assert_fails(&["the programs need 32 MiB: set SHMEM_SYMMETRIC_SIZE=64m"]);
}

/// A device that is full stays what it is.
#[test]
fn a_record_on_a_full_disk_is_an_error() {
    let job = job().arg("--only").arg("setup");
    let full = job.arg("-o").arg("/dev/full").run();
    assert_eq!(full.code(), 1, "{full}");
    let words = "the record /dev/full could not be written: No space left on device";
    assert!(full.stderr.contains(words), "{full}");
    let kind = std::fs::metadata("/dev/full").expect("it").file_type();
    assert!(kind.is_char_device());
}

#[test]
fn a_record_in_no_directory_is_an_error() {
    let job = job().arg("--only").arg("setup");
    let outcome = job.arg("-o").arg("/nowhere/record.json").run();
    assert_eq!(outcome.code(), 1, "{outcome}");
    assert!(
        outcome.stderr.contains("No such file or directory"),
        "{outcome}"
    );
}

/// Of two runs at once, the last one's record remains, and it is complete.
#[test]
fn two_runs_in_one_directory_do_not_mix_their_records() {
    let dir = tempfile::tempdir().expect("a directory");
    let record = dir.path().join("record.json");
    std::thread::scope(|scope| {
        for n in [2, 3] {
            let job = job_of(n).arg("--only").arg("setup,heap");
            let job = job.arg("-o").arg(record.display());
            scope.spawn(move || assert_right(&job.run()));
        }
    });
    let text = std::fs::read_to_string(&record).expect("a record");
    let record: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert!(record["pes"] == 2 || record["pes"] == 3, "{text}");
    assert_eq!(std::fs::read_dir(dir.path()).expect("it").count(), 1);
}

/// PE 0 measures with the first PE whose memory it cannot map.
#[test]
fn a_record_has_the_times_of_the_network() {
    let dir = tempfile::tempdir().expect("a directory");
    let record = dir.path().join("record.json");
    let job = job()
        .env("SHMEM_TRANSPORT", "tcp")
        .env("SHMEM_VIRTUAL_NODES", 2);
    let job = job
        .arg("--only")
        .arg("setup")
        .arg("-o")
        .arg(record.display());
    let outcome = job.run();
    assert_right(&outcome);
    assert!(
        outcome.stdout.contains("put_signal round trip"),
        "{outcome}"
    );

    let text = std::fs::read_to_string(&record).expect("a record");
    let record: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let timings = record["performance"].as_array().expect("a list");
    let put = timings
        .iter()
        .find(|row| row["operation"] == "put")
        .expect("a put");
    assert_eq!(put["peer"], 2, "{text}");
    assert!(put["nanoseconds"].as_f64() > Some(0.0), "{text}");
}

#[test]
fn an_odd_number_of_pes_is_right() {
    assert_right(&job_of(3).arg("--quick").run());
}

/// What needs the refused thread level is not there, and the rest is verified.
#[test]
fn a_library_that_refuses_a_thread_level_is_verified_without_it() {
    let job = with_planted("REFUSES_THREAD_MULTIPLE", job_of_wrapped(2));
    let outcome = job.arg("--only").arg("locks,amo").run();
    assert_right(&outcome);
    let not_there = "lock: not there: it needs the thread level SHMEM_THREAD_MULTIPLE";
    assert!(outcome.stdout.contains(not_there), "{outcome}");
    assert!(
        outcome.lines().any(|line| line.starts_with("amo ")),
        "{outcome}"
    );
}

/// The transfers of more than 2 GiB need a heap that the default is not.
#[test]
fn what_needs_a_large_heap_is_not_there_without_one() {
    let outcome = job_of(2).arg("--only").arg("rma").run();
    assert_right(&outcome);
    let not_there = "beyond_2gib: not there: it needs SHMEM_SYMMETRIC_SIZE=2200m";
    assert!(outcome.stdout.contains(not_there), "{outcome}");
}

#[test]
#[ignore = "takes 5 GiB of memory; part of `cargo xtask test --full`"]
fn transfers_beyond_2_gib_are_right() {
    for job in [job_of(2), off_node(job_of(3))] {
        let job = job.env("SHMEM_SYMMETRIC_SIZE", "2200m");
        let outcome = job.arg("--only").arg("rma").run();
        assert_right(&outcome);
        assert!(!outcome.stdout.contains("not there"), "{outcome}");
    }
}

#[test]
fn one_pe_is_said_to_verify_little() {
    let outcome = job_of(1).arg("--only").arg("setup").run();
    assert!(outcome.status.success(), "{outcome}");
    assert!(
        outcome.stdout.contains("One PE verifies little"),
        "{outcome}"
    );
}

/// Compiles a library that replaces routines by wrong ones.
fn planted(fault: &str) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/faults/planted.c");
    let library = Path::new(TMP).join(format!("{fault}.so"));
    let mut oshcc = Command::new(prefix().join("bin/oshcc"));
    oshcc
        .args(["-shared", "-fPIC", "-w", &format!("-D{fault}")])
        .arg(source)
        .arg("-o")
        .arg(&library);
    assert!(oshcc.status().expect("oshcc").success(), "{fault}");
    library
}

/// Returns a job of the program that a shell starts, so that oshrun itself does not load what
/// [`with_planted`] preloads.
fn job_of_wrapped(n: usize) -> Job {
    Job::new("/usr/bin/env").n(n)
}

fn with_planted(fault: &str, job: Job) -> Job {
    job.arg(format!("LD_PRELOAD={}", planted(fault).display()))
        .arg(prefix().join("bin/shmem-verify").display())
}

#[test]
fn planted_faults_are_found_by_their_families() {
    for (fault, family) in FAULTS {
        let job = with_planted(fault, job_of_wrapped(4));
        let job = job.arg("--quick").arg("--only").arg(family);
        // Some faults make their family hang.
        let outcome = job.arg("--limit").arg(20).run();
        assert_found(&outcome, fault, family);
    }
}

#[track_caller]
fn assert_found(outcome: &Outcome, fault: &str, family: &str) {
    assert!(!outcome.status.success(), "{fault}: {outcome}");
    let is_wrong = |line: &str| line.starts_with(family) && line.contains(" wrong ");
    let hangs = format!("shmem-verify: {family}: ");
    assert!(
        outcome.lines().any(is_wrong) || outcome.stderr.contains(&hangs),
        "{fault} is not found by {family}: {outcome}"
    );
}
