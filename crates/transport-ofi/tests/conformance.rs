//! The conformance suite over each of libfabric's providers that this machine has: once with the
//! default limits, and once with tiny ones and without the optional features of the provider. Only
//! `tcp;ofi_rxm` is tested unless `RUSHMEM_PROVIDERS=all` is set, as `cargo xtask test --full`
//! does. To test another library than the system's, set `LD_LIBRARY_PATH` and `FI_PROVIDER_PATH`.
//!
//! The provider `strict` is our own for tests: its domains are named after the fabrics whose rules
//! they keep.

#![allow(unsafe_code)]

use rushmem_transport::{Amos, Error, Host, Open, Transport};
use rushmem_transport_ofi::{PROVIDER, Tuning, open};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use testkit::{Test, absent};

/// A host on which the user has set a provider, and perhaps a domain of it.
#[derive(Clone, Copy)]
struct Asks {
    provider: &'static str,
    domain: Option<&'static str>,
}

impl Host for Asks {
    fn variable(&self, name: &str) -> Option<String> {
        match name {
            "SHMEM_OFI_PROVIDER" => Some(self.provider.to_owned()),
            "SHMEM_OFI_DOMAIN" => self.domain.map(str::to_owned),
            _ => None,
        }
    }
}

/// Returns the host for a provider such as `tcp`, or a provider and a domain such as `strict cxi`.
fn requested(name: &'static str) -> Asks {
    match name.split_once(' ') {
        Some((provider, domain)) => Asks {
            provider,
            domain: Some(domain),
        },
        None => Asks {
            provider: name,
            domain: None,
        },
    }
}

fn with(provider: &'static str, amos: Amos, open: &Open) -> Open {
    Open {
        host: Arc::new(requested(provider)),
        amos,
        ..open.clone()
    }
}

/// The provider that is always tested.
const FIRST: &str = "tcp;ofi_rxm";

/// Returns the arguments to open a job of one PE over a provider.
fn alone(provider: &'static str) -> Open {
    Open {
        pe: rushmem_transport::Pe(0),
        n_pes: 1,
        secret: [0; 32],
        one_machine: true,
        cpus_per_pe: 0,
        amos: Amos::Software,
        part: None,
        host: Arc::new(requested(provider)),
    }
}

/// Ignores the test unless this machine has the provider and it is to be tested.
fn needs(provider: &'static str) {
    if provider != FIRST && std::env::var("RUSHMEM_PROVIDERS").as_deref() != Ok("all") {
        absent("part of `cargo xtask test --full`");
    }

    let alone = alone(provider);
    let opened = (PROVIDER.available)(&*alone.host).and_then(|_| open(&alone, Tuning::default()));
    if let Err(error) = opened {
        absent(error);
    }
}

/// Defines `suites`. Each row is a name for the tests, libfabric's provider, perhaps with a domain,
/// and who carries out atomic operations.
macro_rules! over {
    ($($module:ident $provider:literal $amos:ident;)*) => {$(
        mod $module {
            use super::*;

            fn usual(open_with: &Open) -> Result<Box<dyn Transport>, Error> {
                let tuning = Tuning { max_sleep: conformance::LIMIT, ..Tuning::default() };
                open(&with($provider, Amos::$amos, open_with), tuning)
            }

            fn tiny(open_with: &Open) -> Result<Box<dyn Transport>, Error> {
                open(&with($provider, Amos::$amos, open_with), Tuning::tiny())
            }

            pub fn tests() -> Vec<Test> {
                let start = concat!(stringify!($module), "::");
                conformance::suite(start, usual, tiny, || needs($provider))
            }
        }
    )*

        fn suites() -> Vec<Test> {
            [$($module::tests()),*].into_iter().flatten().collect()
        }
    };
}

over! {
    tcp "tcp" Software;
    tcp_rxm "tcp;ofi_rxm" Software;
    sockets "sockets" Software;
    shm "shm" Software;
    verbs_rxm "verbs;ofi_rxm" Software;
    // `Network` is what a user sets whose NICs carry out atomic operations; here libfabric's
    // software carries them out.
    tcp_rxm_network "tcp;ofi_rxm" Network;
    shm_network "shm" Network;
    copy "strict copy" Software;
    copy_network "strict copy" Network;
    cxi "strict cxi" Software;
    cxi_network "strict cxi" Network;
    efa "strict efa" Software;
    opx "strict opx" Software;
    opx_network "strict opx" Network;
    psm3 "strict psm3" Software;
    psm3_network "strict psm3" Network;
    mrail "strict mrail" Software;
    few_connections "strict few-connections" Software;
}

/// Faulty providers are not opened, and the message says what to use instead.
fn faulty_providers_are_refused_by_name() {
    for provider in ["udp;ofi_rxd", "net"] {
        let alone = alone(provider);
        if let Err(error) = (PROVIDER.available)(&*alone.host) {
            absent(error);
        }

        let Err(Error::Unavailable(why)) = open(&alone, Tuning::default()) else {
            panic!("{provider} was opened")
        };

        // libfabric may offer it with a layer above it, without a device, or not at all.
        let refused =
            why.contains(provider) && why.contains("known to ") && why.contains("tcp;ofi_rxm");
        let is_absent = ["there is no such provider", "no device of this kind"]
            .iter()
            .any(|text| why.contains(text));
        assert!(refused || is_absent, "{why}");
    }
}

/// A provider that lacks a compare-and-swap is not opened if the network is to carry out atomic
/// operations.
fn too_few_atomic_operations_are_refused() {
    let few = alone("strict few");
    if let Err(error) = open(&few, Tuning::default()) {
        absent(error);
    }

    let network = Open {
        amos: Amos::Network,
        ..few
    };

    let Err(Error::Unavailable(why)) = open(&network, Tuning::default()) else {
        panic!("it was opened")
    };
    assert!(
        why.contains("provider strict, domain few: it has no compare-and-swap of 4 and 8 bytes"),
        "{why}"
    );
}

/// The host of a job of two nodes with 192 PEs each.
struct ManyPesPerNode;

impl Host for ManyPesPerNode {
    fn variable(&self, name: &str) -> Option<String> {
        (name == "SHMEM_OFI_PROVIDER").then(|| "strict".to_owned())
    }

    fn pairs_of_node(&self) -> u64 {
        192 * 192
    }
}

/// If a node would make too many connections, connectionless domains are preferred to one with
/// connections, although libfabric offers that one first.
fn connections_are_avoided_where_there_would_be_too_many() {
    let few = alone("strict");
    if let Err(error) = open(&few, Tuning::default()) {
        absent(error);
    }

    let reason = |with: &Open| {
        let first = (PROVIDER.diagnose)(with).into_iter().next();
        first.expect("a provider that can be used").reason
    };
    let usual = reason(&few);
    assert!(
        usual.starts_with("connects each pair of PEs; few-connections, "),
        "{usual}"
    );

    let many = reason(&Open {
        host: Arc::new(ManyPesPerNode),
        ..few
    });
    let preferred =
        "connectionless: preferred, since a node would connect 36864 pairs of PEs; copy, ";
    assert!(
        many.starts_with(preferred) && many.ends_with(", few-connections, no-connections"),
        "{many}"
    );
}

fn main() -> ExitCode {
    // SAFETY: the process has one thread.
    unsafe { strict_fabric::offer(Path::new(env!("CARGO_TARGET_TMPDIR"))) };
    let mut tests = suites();
    let faulty = faulty_providers_are_refused_by_name;
    tests.push(Test::new("faulty_providers_are_refused_by_name", faulty));
    let few = too_few_atomic_operations_are_refused;
    tests.push(Test::new("too_few_atomic_operations_are_refused", few));
    let avoided = connections_are_avoided_where_there_would_be_too_many;
    tests.push(Test::new(
        "connections_are_avoided_where_there_would_be_too_many",
        avoided,
    ));
    testkit::run(tests)
}
