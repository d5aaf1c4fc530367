//! Rushmem over UCX: InfiniBand, RoCE, shared memory and Ethernet, as far as UCX supports them.
//!
//! The library is opened at run time. Each PE has a service worker, to which its peers send
//! requests, and workers for its contexts, which issue requests. A thread that waits polls them;
//! while none does, a service thread polls. Puts and gets are RMA operations of UCX, except that
//! small ones are batched into messages in sessions, and always where CPUs move the data. Atomic
//! operations are messages that the target's CPU carries out, because operations of a NIC are not
//! atomic with respect to those of a CPU. If `SHMEM_AMOS` leaves them to the network, UCX carries
//! them out, except on the library's own flags.
//!
//! - `transport` opens UCX; `wire` starts the operations of contexts: a wire is a worker, and
//!   `callbacks` is the part of its state that UCX's callbacks change;
//! - `progress` is the driver of the service thread; `service` is the worker that serves peers;
//! - `shared` is the state that all wires share; `connect` has the addresses and keys that PEs
//!   exchange;
//! - `ucp` owns UCX's objects and has most of the unsafe code;
//! - `found` reports whether UCX has an RDMA device here, and configures UCX for a job; `amo_probe`
//!   tests UCX's atomic operations; `diagnosis` reports each of UCX's transports to users;
//! - `ports` gives UCX's sockets free ports of the user's range;
//! - `settings` has the limits and variables, also UCX's own;
//! - `abort` delays an abort by UCX, and prints a message then.
//!
//! Limits: the crate does not choose among UCX's transports, except that it excludes those of
//! shared memory by default (`SHMEM_UCX_TLS` and UCX's own variables choose). It does not
//! authenticate peers, since UCX does not. If the job is on one machine and the user names no
//! interfaces or devices, UCX's sockets are restricted to the loopback interface if they work
//! there.

mod abort;
mod amo_probe;
mod callbacks;
mod connect;
mod diagnosis;
mod found;
mod ports;
mod progress;
mod service;
mod settings;
mod shared;
#[cfg(test)]
mod tests;
mod transport;
mod ucp;
mod wire;

pub use settings::Tuning;
pub use transport::open;

use rushmem_transport::{Error, Provider};

/// The entry of this crate in the list of providers.
pub const PROVIDER: Provider = Provider {
    name: "ucx",
    sources: rushmem_derive::digest_of_sources!(),
    settings: settings::ALL,
    opens_libraries: true,
    without_rdma: false,
    network_amos: true,
    available: |host| found::found(host).map_err(Error::Unavailable),
    parts: None,
    diagnose: diagnosis::diagnose,
    open: |args| open(args, Tuning::of(&*args.host)?),
};
