//! Runs tests of this program again over TCP, and over other networks.

use testkit::{Job, Outcome, has_library};

/// The networks besides TCP: the library, the value of `SHMEM_TRANSPORT`, and a variable that
/// selects what works on every machine.
const OTHERS: [(&str, &str, (&str, &str)); 2] = [
    ("libucp.so.0", "ucx", ("UCX_TLS", "tcp,self")),
    (
        "libfabric.so.1",
        "ofi",
        ("SHMEM_OFI_PROVIDER", "tcp;ofi_rxm"),
    ),
];

/// Returns a test of this program as a job of `n` PEs over a network.
pub fn job(test: &str, n: usize, transport: &str) -> Job {
    let this = std::env::current_exe().expect("a test program knows its path");
    let job = Job::new(this).n(n).env("SHMEM_TEST", test);
    let job = job
        .env("SHMEM_ONNODE", "off")
        .env("SHMEM_TRANSPORT", transport);
    let arguments = [test, "--exact", "--nocapture", "--test-threads=1"];
    arguments
        .into_iter()
        .fold(job, |job, argument| job.arg(argument))
}

/// Runs a test of this program as a job of 2 PEs over TCP.
pub fn run(test: &str) -> Outcome {
    job(test, 2, "tcp").run()
}

/// Runs a test of this program as a job of 2 PEs over TCP, and checks that it passes.
pub fn passes(test: &str) {
    passes_on(2, test);
}

/// Works as [`passes`], on `n` PEs.
pub fn passes_on(n: usize, test: &str) {
    let outcome = job(test, n, "tcp").run();
    assert!(outcome.status.success(), "{outcome}");
}

/// Works as [`passes`], and runs the test over the other networks, too, whose libraries are here.
pub fn passes_over_all(test: &str) {
    passes(test);
    for (library, transport, (variable, value)) in OTHERS {
        if has_library(library) {
            let outcome = job(test, 2, transport).env(variable, value).run();
            assert!(outcome.status.success(), "{outcome}");
        }
    }
}
