//! Rushmem over UCX: InfiniBand, RoCE, shared memory and Ethernet, as far as UCX has them.
//!
//! The library is opened at run time. Each PE has a service worker, to which its peers talk, and a
//! worker per context, from which it talks; a service thread lets them work while the PE computes, and
//! a PE that waits does so by itself. Puts and gets are UCX's; atomic operations are carried out by the
//! target's CPU, to which they are sent as messages, since UCX's own have been seen to be wrong and do
//! not compose with the CPU's where a NIC does them (`SHMEM_AMOS` says who does).
//!
//! - `endpoint` and `transport` are what the traits of `rushmem-transport` are made of;
//! - `progress` says who lets the workers work and who sleeps, `service` is the worker that whoever polls serves the peers by;
//! - `shared` has the peers, the first loss, and how to wait; `connect` is what is known of a peer;
//! - `origin` issues what the contexts of one worker ask for, of which `issuer` is the lock; `pending` is what UCX's callbacks
//!   change of it; `target` carries out what peers ask for;
//! - `proto` is what PEs tell each other, without I/O;
//! - `ucp` owns UCX's objects and holds most of the unsafe code;
//! - `found` says what of UCX this machine has, `probe` whether UCX's atomic operations are right;
//! - `settings` has the limits and variables, `defaults` what UCX's own variables are, `sys` the
//!   calls of the C library;
//! - `abort` says what happens when UCX ends the process.
//!
//! What it does not do: it does not choose among UCX's transports (`UCX_TLS` and its kin do), and it
//! does not authenticate peers, for UCX does not: where the job is on one machine its sockets are kept to loopback.

mod abort;
#[cfg(test)]
mod answered;
mod connect;
mod defaults;
mod endpoint;
mod found;
#[cfg(test)]
mod in_flight;
mod issuer;
mod origin;
#[cfg(test)]
mod pair;
mod pending;
mod probe;
mod progress;
mod proto;
mod service;
mod settings;
mod shared;
mod sys;
mod target;
mod transport;
mod ucp;

pub use settings::Tuning;
pub use transport::open;

use rushmem_transport::{Error, Provider};

/// The entry for a list of providers.
pub const PROVIDER: Provider = Provider {
    name: "ucx",
    settings: settings::ALL,
    opens_libraries: true,
    without_rdma: false,
    network_amos: true,
    available: |host| found::found(host).map_err(Error::Unavailable),
    open: |with| open(with, Tuning::default()),
};
