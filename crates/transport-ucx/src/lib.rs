//! Rushmem over UCX: InfiniBand, RoCE, shared memory and Ethernet, as far as UCX has them.
//!
//! The library is opened at run time. Each PE has a service worker, to which its peers talk, and a
//! worker per context, from which it talks; a service thread lets them work while the PE computes, and
//! a PE that waits does so by itself. Puts and gets are UCX's; atomic operations are carried out by the
//! target's CPU, to which they are sent as messages, since UCX's own have been seen to be wrong and do
//! not compose with the CPU's where a NIC does them (`SHMEM_UCX_AMOS=network` asks for them).
//!
//! - `proto` is what PEs tell each other, without I/O;
//! - `ucp` owns UCX's objects and holds most of the unsafe code;
//! - `found` says what of UCX this machine has;
//! - `probe` finds out whether UCX's atomic operations are right;
//! - `target` serves the peers, `origin` issues what one context asks for, `pending` is what UCX's
//!   callbacks change;
//! - `shared`, `thread` and `backoff` say who lets the workers work, and who sleeps; `peers` is what an origin needs of that;
//! - `endpoint` and `transport` are what the traits of `rushmem-transport` are made of.
//!
//! What it does not do: it does not choose among UCX's transports (`UCX_TLS` and its kin do), and it
//! does not authenticate peers, for UCX does not: where the job is on one machine its sockets are kept to loopback.

mod area;
mod backoff;
mod endpoint;
mod found;
mod origin;
mod peers;
mod pending;
mod probe;
mod proto;
mod settings;
mod shared;
mod sys;
mod target;
mod thread;
mod transport;
mod ucp;

pub use rushmem_transport::kit::amos::Amos;
pub use settings::Tuning;
pub use transport::open;

use rushmem_transport::{Error, Provider, Setting};

/// The entry for a list of providers.
pub const PROVIDER: Provider = Provider {
    name: "ucx",
    settings: &[
        Setting {
            name: "SHMEM_UCX_TLS",
            old_name: None,
            default: None,
            meaning: "the transports that UCX may use, unless UCX_TLS says so; by default all",
        },
        Setting {
            name: "SHMEM_UCX_AMOS",
            old_name: None,
            default: Some("software"),
            meaning: "who carries out atomic operations over UCX: software (the target's CPU) or network",
        },
    ],
    opens_libraries: true,
    without_rdma: false,
    available: |host| found::found(host).map_err(Error::Unavailable),
    open: |with| open(with, Tuning::default()),
};
