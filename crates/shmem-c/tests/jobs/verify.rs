//! shmem-verify: the library passes, and the families of planted faults do not.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use testkit::{Job, Outcome, prefix};

/// Faults of tests/faults/planted.c, and the family that finds each.
const FAULTS: [(&str, &str); 21] = [
    ("WRONG_VERSION", "setup"),
    ("CALLOC_NOT_ZERO", "heap"),
    ("ALIGNS_TO_16_BYTES", "heap"),
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
    let programs = record["programs"].as_array().expect("a list");
    assert!(programs.len() > 15, "{text}");
    assert!(
        programs.iter().all(|row| row["verdict"] == "right"),
        "{text}"
    );
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
    only.assert_fails(&["no family has the name nothing", "setup, heap, rma"]);
    let option = job().arg("--fast").run();
    assert_eq!(option.code(), 2, "{option}");
    option.assert_fails(&["not an option: --fast"]);
    let heap = job().env("SHMEM_SYMMETRIC_SIZE", "1m").run();
    assert_eq!(heap.code(), 2, "{heap}");
    heap.assert_fails(&["the programs need 32 MiB: set SHMEM_SYMMETRIC_SIZE=64m"]);

    let full = job()
        .arg("--only")
        .arg("setup")
        .arg("-o")
        .arg("/dev/full/x");
    let full = full.run();
    assert_eq!(full.code(), 1, "{full}");
    assert!(full.stderr.contains("could not be written"), "{full}");
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

#[test]
fn planted_faults_are_found_by_their_families() {
    for (fault, family) in FAULTS {
        // oshrun itself does not load the library.
        let job = Job::new("/usr/bin/env").n(4);
        let job = job.arg(format!("LD_PRELOAD={}", planted(fault).display()));
        let job = job.arg(prefix().join("bin/shmem-verify").display());
        let job = job.arg("--quick").arg("--only").arg(family);
        // Some faults make their family hang.
        let job = job.arg("--limit").arg(20);
        let outcome = job.run();
        assert!(!outcome.status.success(), "{fault}: {outcome}");

        let is_wrong = |line: &str| line.starts_with(family) && line.contains(" wrong ");
        let hangs = format!("shmem-verify: {family}: ");
        assert!(
            outcome.lines().any(is_wrong) || outcome.stderr.contains(&hangs),
            "{fault} is not found by {family}: {outcome}"
        );
    }
}
