//! The conformance suite over UCX's transports that need no special hardware, and over verbs if
//! there is a NIC. Of those over shared memory only `posix` is tested unless `RUSHMEM_EVERY_SIZE`
//! is set, as `cargo xtask test --full` does.
//!
//! It uses the UCX that the dynamic linker finds; LD_LIBRARY_PATH and UCX_MODULE_DIR select another
//! one.

use rushmem_transport::{Amos, Error, Host, Open, Transport};
use rushmem_transport_ucx::{PROVIDER, Tuning, open};
use std::process::ExitCode;
use std::sync::Arc;
use testkit::{Test, absent, every_size};

/// A host on which the user has set SHMEM_UCX_TLS.
struct Asks(&'static str);

impl Host for Asks {
    fn variable(&self, name: &str) -> Option<String> {
        (name == "SHMEM_UCX_TLS").then(|| self.0.to_owned())
    }
}

fn with(
    transports: &'static str,
    amos: Amos,
    with: &Open,
    tuning: Tuning,
) -> Result<Box<dyn Transport>, Error> {
    let with = Open {
        host: Arc::new(Asks(transports)),
        amos,
        ..with.clone()
    };
    open(&with, tuning)
}

/// Ignores the test if UCX is absent.
fn needs_ucx() {
    if let Err(why) = (PROVIDER.available)(&Asks("tcp,self")) {
        absent(why);
    }
}

/// Ignores the test if UCX is absent, or unless everything is tested. UCX hands messages of these
/// transports over as those of `posix`; a program of `--providers` in five uses each of them.
fn needs_full() {
    if !every_size() {
        absent("part of `cargo xtask test --full`");
    }
    needs_ucx();
}

/// Ignores the test if UCX cannot carry out atomic operations over TCP: from 1.20 on, it cannot
/// with endpoints that report failures.
fn needs_atomics() {
    needs_ucx();
    if !ucx_sys::open().is_ok_and(|ucp| ucx_sys::version(ucp) < (1, 20, 0)) {
        absent("this UCX has no atomic operations without a NIC that does them");
    }
}

/// Ignores the test if no NIC speaks verbs, or UCX cannot use it for these atomic operations.
fn needs_verbs(amos: Amos) {
    if std::fs::read_dir("/sys/class/infiniband").map_or(0, Iterator::count) == 0 {
        absent("no NIC speaks verbs");
    }

    let alone = Open {
        pe: rushmem_transport::Pe(0),
        n_pes: 1,
        secret: [0; 32],
        one_machine: true,
        cpus_per_pe: 0,
        amos: Amos::Software,
        part: None,
        host: Arc::new(Asks(VERBS)),
    };
    let opened = (PROVIDER.available)(&*alone.host)
        .and_then(|_| with(VERBS, amos, &alone, Tuning::default()));
    if let Err(error) = opened {
        absent(error);
    }
}

/// Reliable connections of any NIC that speaks verbs, also of one in software, a kernel module.
const VERBS: &str = "rc_verbs,ud_verbs:aux,self";

/// Defines `main`, which runs the suite for each row: a name for the tests, UCX's transports, who
/// carries out atomic operations, and a function that ignores the test if anything is absent.
macro_rules! over {
    ($($name:ident $transports:tt $amos:expr, $needs:expr;)*) => {$(
        mod $name {
            use super::*;

            fn usual(open: &Open) -> Result<Box<dyn Transport>, Error> {
                with($transports, $amos, open, Tuning { max_sleep: conformance::LIMIT, ..Tuning::default() })
            }

            fn tiny(open: &Open) -> Result<Box<dyn Transport>, Error> {
                with($transports, $amos, open, Tuning::tiny())
            }

            pub fn tests() -> Vec<Test> {
                conformance::suite(concat!(stringify!($name), "::"), usual, tiny, $needs)
            }
        }
    )*

        fn main() -> ExitCode {
            testkit::run([$($name::tests()),*].into_iter().flatten().collect())
        }
    };
}

over! {
    tcp "tcp,self" Amos::Software, needs_ucx;
    posix "posix,self" Amos::Software, needs_ucx;
    sysv "sysv,self" Amos::Software, needs_full;
    // cma only copies between processes; messages need another transport.
    cma "cma,posix,self" Amos::Software, needs_full;
    // `Network` is what a user sets whose NICs carry out atomic operations; here UCX's software
    // carries them out.
    network "tcp,self" Amos::Network, needs_atomics;
    // `cargo xtask verbs` has a NIC in a virtual machine.
    verbs VERBS Amos::Software, || needs_verbs(Amos::Software);
    verbs_network VERBS Amos::Network, || needs_verbs(Amos::Network);
}
