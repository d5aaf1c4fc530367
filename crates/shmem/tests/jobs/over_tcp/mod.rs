//! Runs tests of this program again as jobs of another kind: over TCP, and over other networks.

use std::path::PathBuf;
use testkit::{Job, Outcome, has_library};

/// A network that needs a library.
struct Network {
    library: &'static str,
    /// The value of `SHMEM_TRANSPORT`.
    transport: &'static str,
    /// A variable that selects what works on every machine.
    variable: (&'static str, &'static str),
}

/// The networks besides TCP.
const OTHERS: [Network; 2] = [
    Network {
        library: "libucp.so.0",
        transport: "ucx",
        variable: ("UCX_TLS", "tcp,self"),
    },
    Network {
        library: "libfabric.so.1",
        transport: "ofi",
        variable: ("SHMEM_OFI_PROVIDER", "tcp;ofi_rxm"),
    },
];

/// Returns the path of this program.
pub fn this() -> PathBuf {
    std::env::current_exe().expect("a test program knows its path")
}

/// Has a job of this program run a test.
pub fn of_test(job: Job, test: &str) -> Job {
    job.args([test, "--exact", "--nocapture", "--test-threads=1"])
        .env("SHMEM_TEST", test)
}

/// Returns a test of this program as a job of `n` PEs over a network.
pub fn job(test: &str, n: usize, transport: &str) -> Job {
    of_test(Job::new(this()).n(n), test)
        .env("SHMEM_ONNODE", "off")
        .env("SHMEM_TRANSPORT", transport)
}

/// Runs a test of this program as a job of 2 PEs over TCP.
pub fn run(test: &str) -> Outcome {
    job(test, 2, "tcp").run()
}

/// Runs a test of this program as a job of 2 PEs over TCP, and checks that it passes.
pub fn passes(test: &str) {
    passes_on(2, test);
}

/// Runs a test of this program as a job of `n` PEs over TCP, and checks that it passes.
pub fn passes_on(n: usize, test: &str) {
    let outcome = job(test, n, "tcp").run();
    assert!(outcome.status.success(), "{outcome}");
}

/// Runs a test of this program as a job of 2 PEs over TCP, and over each other network whose
/// library is installed, and checks that it passes.
pub fn passes_over_all(test: &str) {
    passes(test);
    for network in OTHERS {
        if has_library(network.library) {
            let job = job(test, 2, network.transport).envs(&[network.variable]);
            let outcome = job.run();
            assert!(outcome.status.success(), "{outcome}");
        }
    }
}
