//! The suite that every provider must pass, over each of libfabric's providers that this machine has; once
//! with the usual and once with tiny queues, and without trust in what the provider says of completion and
//! order.
//!
//! `RUSHMEM_OFI_DIR` may name a folder with another `libfabric.so.1` and its providers.

use rushmem_transport::{Error, Host, Open, Transport};
use rushmem_transport_ofi::{PROVIDER, Tuning, open};
use std::sync::Arc;

/// Asks for one provider.
struct Asks(&'static str);

impl Host for Asks {
    fn variable(&self, name: &str) -> Option<String> {
        (name == "SHMEM_OFI_PROVIDER").then(|| self.0.to_owned())
    }
}

fn with(provider: &'static str, open: &Open) -> Open {
    Open { host: Arc::new(Asks(provider)), ..open.clone() }
}

/// Whether this machine has the provider; says so when not.
fn is_here(provider: &'static str) -> bool {
    let alone = Open {
        pe: rushmem_transport::Pe(0),
        n_pes: 1,
        secret: [0; 32],
        one_machine: true,
        crowded: true,
        host: Arc::new(Asks(provider)),
    };
    let opened = (PROVIDER.available)().and_then(|()| open(&alone, Tuning::default()));
    if let Err(error) = &opened {
        eprintln!("skipped: {error}");
    }
    opened.is_ok()
}

macro_rules! over {
    ($($module:ident $provider:literal;)*) => {$(
        mod $module {
            use super::*;

            fn usual(open_with: &Open) -> Result<Box<dyn Transport>, Error> {
                (PROVIDER.open)(&with($provider, open_with))
            }

            fn tiny(open_with: &Open) -> Result<Box<dyn Transport>, Error> {
                open(&with($provider, open_with), Tuning::tiny())
            }

            fn here() -> bool {
                is_here($provider)
            }

            rushmem_transport::conformance!(usual, tiny, here);
        }
    )*};
}

over! {
    tcp "tcp";
    tcp_rxm "tcp;ofi_rxm";
    net "net";
    sockets "sockets";
    shm "shm";
    udp_rxd "udp;ofi_rxd";
}
