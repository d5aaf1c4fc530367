//! Runs tests of this program again over TCP.

use testkit::{Job, Outcome};

/// Runs a test of this program as a job of 2 PEs over TCP.
pub fn run(test: &str) -> Outcome {
    let this = std::env::current_exe().expect("a test program knows its path");
    let job = Job::new(this).n(2).env("SHMEM_TEST", test);
    let job = job.env("SHMEM_ONNODE", "off").env("SHMEM_TRANSPORT", "tcp");
    let arguments = [test, "--exact", "--nocapture", "--test-threads=1"];
    arguments
        .into_iter()
        .fold(job, |job, argument| job.arg(argument))
        .run()
}

/// Runs a test of this program as a job of 2 PEs over TCP, and checks that it passes.
pub fn passes(test: &str) {
    let outcome = run(test);
    assert!(outcome.status.success(), "{outcome}");
}
