//! The suite that every provider must pass, over each of UCX's transports that need no special hardware, and over
//! verbs where there is a NIC.
//!
//! It runs with the UCX that the dynamic linker finds: another version by LD_LIBRARY_PATH and
//! UCX_MODULE_DIR.

use rushmem_transport::{Error, Host, Open, Transport};
use rushmem_transport_ucx::{Amos, PROVIDER, Tuning, open};
use std::sync::Arc;

/// A host with these transports of UCX's.
struct Asks(&'static str);

impl Host for Asks {
    fn variable(&self, name: &str) -> Option<String> {
        (name == "SHMEM_UCX_TLS").then(|| self.0.to_owned())
    }
}

fn with(
    transports: &'static str,
    with: &Open,
    tuning: Tuning,
) -> Result<Box<dyn Transport>, Error> {
    open(&Open { host: Arc::new(Asks(transports)), ..with.clone() }, tuning)
}

/// Whether UCX is here; where it is not, the test says so and passes.
fn here() -> bool {
    (PROVIDER.available)(&Asks("tcp,self")).inspect_err(|why| println!("skipped: {why}")).is_ok()
}

/// Whether UCX does atomic operations over TCP: since 1.20 not by endpoints that notice failures.
fn has_atomics() -> bool {
    let has = |ucp| ucx_sys::version(ucp) < (1, 20, 0);
    let why = "skipped: this UCX has no atomic operations without a NIC that does them";
    here()
        && (ucx_sys::open().is_ok_and(has) || {
            println!("{why}");
            false
        })
}

/// Whether a NIC speaks verbs, and UCX uses it as these limits ask.
fn has_verbs(amos: Option<Amos>) -> bool {
    if std::fs::read_dir("/sys/class/infiniband").map_or(0, Iterator::count) == 0 {
        println!("skipped: no NIC speaks verbs");
        return false;
    }
    let alone = Open {
        pe: rushmem_transport::Pe(0),
        n_pes: 1,
        secret: [0; 32],
        one_machine: true,
        oversubscribed: true,
        host: Arc::new(Asks(VERBS)),
    };
    let opened = (PROVIDER.available)(&*alone.host)
        .and_then(|_| with(VERBS, &alone, Tuning { amos, ..Tuning::default() }));
    if let Err(error) = &opened {
        println!("skipped: {error}");
    }
    opened.is_ok()
}

/// Reliable connections of any NIC that speaks verbs, of which a software one is a kernel module.
const VERBS: &str = "rc_verbs,ud_verbs:aux,self";

/// The suite over some of UCX's transports.
macro_rules! over {
    ($($name:ident $transports:tt $amos:expr, $here:expr;)*) => {$(
        mod $name {
            use super::*;

            fn usual(open: &Open) -> Result<Box<dyn Transport>, Error> {
                with($transports, open, Tuning { amos: $amos, ..Tuning::default() })
            }

            fn tiny(open: &Open) -> Result<Box<dyn Transport>, Error> {
                with($transports, open, Tuning { amos: $amos, ..Tuning::tiny() })
            }

            rushmem_transport::conformance!(usual, tiny, $here);
        }
    )*};
}

over! {
    tcp "tcp,self" None, here;
    posix "posix,self" None, here;
    sysv "sysv,self" None, here;
    // Copies between processes need something else for messages.
    cma "cma,posix,self" None, here;
    // As a user asks for it who has NICs that do atomic operations; here the library's software does.
    network "tcp,self" Some(Amos::Network), has_atomics;
    // `cargo xtask verbs` has a NIC in a virtual machine.
    verbs VERBS None, || has_verbs(None);
    verbs_network VERBS Some(Amos::Network), || has_verbs(Some(Amos::Network));
}
