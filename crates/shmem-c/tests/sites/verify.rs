//! shmem-verify over networks and under launchers that a machine may lack, and as a static program.
//! `tests/jobs/verify.rs` has the tests that every machine can run.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::launchers::{HYDRA, Launcher, MPIRUN};
use testkit::{Job, needs_library, prefix, program};

const TMP: &str = env!("CARGO_TARGET_TMPDIR");

/// The programs take seconds, and minutes beside many processes that compute.
const LIMIT: Duration = Duration::from_secs(600);

fn installed() -> PathBuf {
    prefix().join("bin/shmem-verify")
}

/// Runs the short programs, and checks that everything is right and that the record says how the
/// PEs reached each other.
#[track_caller]
pub fn is_right(job: Job, path: &str) {
    let dir = tempfile::tempdir().expect("a directory");
    let record = dir.path().join("record.json");

    let outcome = job
        .timeout(LIMIT)
        .args(["--quick", "--limit", "500", "-o"])
        .arg(record.display())
        .run();
    assert!(outcome.status.success(), "{outcome}");
    let verdict = "Everything that was verified is right.\n";
    assert!(outcome.stdout.contains(verdict), "{outcome}");

    let text = fs::read_to_string(&record).expect("a record");
    let record: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let transport = record["transport"].as_str().expect("a path");
    assert!(transport.contains(path), "{text}");
}

fn over(transport: &str) -> Job {
    Job::new(installed())
        .n(3)
        .env("SHMEM_TRANSPORT", transport)
        .env("SHMEM_ONNODE", "off")
}

fn over_virtual_nodes() {
    let job = Job::new(installed())
        .n(5)
        .env("SHMEM_TRANSPORT", "tcp")
        .env("SHMEM_VIRTUAL_NODES", "2+3");
    is_right(job, "tcp between nodes");
}

fn over_ucx() {
    needs_library("libucp.so.0");
    is_right(over("ucx").env("UCX_TLS", "tcp,self"), "ucx: ");
}

fn over_libfabric() {
    needs_library("libfabric.so.1");
    let job = over("ofi").env("SHMEM_OFI_PROVIDER", "tcp;ofi_rxm");
    is_right(job, "ofi: ");
}

fn over_a_strict_fabric() {
    is_right(strict(Job::new(installed()).n(2)), "ofi: ");
}

/// Makes PEs use the strict fabric, which keeps no order of operations.
fn strict(job: Job) -> Job {
    needs_library("libfabric.so.1");
    let provider = strict_fabric::dir(Path::new(TMP)).expect("the provider was built");
    job.env("SHMEM_ONNODE", "off")
        .env("SHMEM_TRANSPORT", "ofi")
        .env("SHMEM_OFI_PROVIDER", "strict")
        .env("SHMEM_OFI_DOMAIN", "efa")
        .env("FI_PROVIDER_PATH", provider.display())
}

/// Over a fabric without order, flags overtake data if a fence does nothing.
fn a_fence_that_does_nothing_is_found_over_a_strict_fabric() {
    let job = with_fault("FENCE_DOES_NOTHING", &installed())
        .args(["--litmus=1000", "--limit", "500"]);
    let outcome = strict(job).timeout(LIMIT).run();

    assert_eq!(outcome.code(), 1, "{outcome}");
    let is_found = outcome.lines().any(|line| {
        line.starts_with("MP: put, fence, put ") && line.ends_with("BROKEN: OpenSHMEM forbids it")
    });
    assert!(is_found, "{outcome}");
}

/// The source of a long put is overwritten before the network has read it.
fn a_flush_that_does_nothing_is_found_over_tcp() {
    let outcome = with_fault("FLUSH_DOES_NOTHING", &program!("flush.c"))
        .env("SHMEM_TRANSPORT", "tcp")
        .env("SHMEM_ONNODE", "off")
        .run();
    assert!(!outcome.status.success(), "{outcome}");
    let found = "elements are not those before the flush";
    assert!(outcome.stdout.contains(found), "{outcome}");
}

/// Returns a job of two PEs of a program, with a library that has a fault of `planted.c`.
fn with_fault(fault: &str, program: &Path) -> Job {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/faults/planted.c");
    let library = Path::new(TMP).join(format!("{fault}.so"));
    let mut oshcc = Command::new(prefix().join("bin/oshcc"));
    oshcc
        .args(["-shared", "-fPIC", "-w", &format!("-D{fault}")])
        .arg(source)
        .arg("-o")
        .arg(&library);
    assert!(oshcc.status().expect("oshcc").success());

    // Set by `env`, the variable is not one of oshrun, which would load the library, too.
    Job::new("/usr/bin/env")
        .n(2)
        .arg(format!("LD_PRELOAD={}", library.display()))
        .arg(program.display())
}

/// Returns the compiler for the sources of shmem-verify.
fn oshcc() -> Command {
    let mut oshcc = Command::new(prefix().join("bin/oshcc"));
    oshcc.args(["-w", "-DSHMEM_VERIFY", "-DVERSION=\"static\""]);
    oshcc
}

/// Links shmem-verify and all its programs statically.
fn as_a_static_program() {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR"));
    let program = Path::new(TMP).join("shmem-verify-static");
    let mut link = oshcc();
    link.args(["-static", "-o"]).arg(&program);

    let verify = sources.join("../../launcher/shmem-verify");
    let loops = sources.join("../../launcher/shmem-perf/c");
    link.arg("-I").arg(&loops);
    for file in ["verify.c", "performance.c"] {
        link.arg(verify.join(file));
    }
    for file in ["alone.c", "buffers.c", "collective.c", "round_trip.c"] {
        link.arg(loops.join(file));
    }

    let list = fs::read_to_string(verify.join("programs.h")).expect("the list");
    for line in list.lines() {
        let Some(row) = line.strip_prefix("PROGRAM(") else {
            continue;
        };
        let name = row.split(',').nth(1).expect("a name").trim();
        let source = sources.join("tests/programs").join(format!("{name}.c"));
        let object = Path::new(TMP).join(format!("verify-{name}.o"));

        // Each program has a `main`, which the linked one calls by another name.
        let mut compile = oshcc();
        compile
            .args(["-c", &format!("-Dmain=verify_{name}"), "-o"])
            .arg(&object)
            .arg(source);
        assert!(compile.status().expect("oshcc").success(), "{name}");
        link.arg(object);
    }

    link.arg("-lm");
    assert!(link.status().expect("oshcc").success());

    is_right(Job::new(&program).n(3), "shared memory");
    let over_tcp = Job::new(&program)
        .n(2)
        .env("SHMEM_TRANSPORT", "tcp")
        .env("SHMEM_ONNODE", "off");
    is_right(over_tcp, "tcp");
}

fn under_mpirun() {
    let job = Launcher::needed(MPIRUN).job(installed(), 3);
    is_right(job, "shared memory");
}

fn under_hydra() {
    let job = Launcher::needed(HYDRA).job(installed(), 3);
    is_right(job, "shared memory");
}

testkit::module_tests! {
    ; ignored "part of `cargo xtask test --providers`" =>
    a_fence_that_does_nothing_is_found_over_a_strict_fabric,
    a_flush_that_does_nothing_is_found_over_tcp,
    ; ignored "part of `cargo xtask test --full`" =>
    over_virtual_nodes,
    over_ucx,
    over_libfabric,
    over_a_strict_fabric,
    as_a_static_program,
    under_mpirun,
    under_hydra,
}
