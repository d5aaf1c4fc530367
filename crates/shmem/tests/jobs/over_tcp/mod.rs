//! Runs tests of this program again over TCP, and over other networks.

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

/// Returns a test of this program as a job of `n` PEs over a network.
pub fn job(test: &str, n: usize, transport: &str) -> Job {
    let this = std::env::current_exe().expect("a test program knows its path");
    Job::new(this)
        .n(n)
        .args([test, "--exact", "--nocapture", "--test-threads=1"])
        .env("SHMEM_TEST", test)
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
