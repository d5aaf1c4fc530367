//! Rushmem over libfabric: Slingshot, Omni-Path, EFA, InfiniBand and every other network for which
//! libfabric has a provider. One build serves all of them, since a provider's needs and
//! capabilities are queried when it is opened.
//!
//! Puts and gets are RMA operations of libfabric, except that small ones are batched into messages
//! where CPUs move the data anyway. Atomic operations are messages to the target's service
//! endpoint, whose CPU carries them out: operations of a device are not atomic with respect to
//! those of a node's CPUs on the same word. If `SHMEM_AMOS` leaves them to the network, they are
//! atomic operations of libfabric.
//!
//! - `transport` opens a provider and endpoints; `wire` starts the operations of contexts;
//! - `progress` is the driver of the service thread; `service` serves peers;
//! - `shared` is the state that all wires share, `connect` has the addresses and keys that PEs
//!   exchange, and `silent_peer` checks whether a silent peer still listens;
//! - `ep` is an endpoint of libfabric with its connections and its operations in flight; `permits`
//!   limits the connections that are made at once; `message` has the messages to the target's CPU,
//!   `native` the atomic operations of the fabric;
//! - `info` compares what libfabric offers with what a job requires, `quirks` has known faults of
//!   its providers; `choice` selects a provider, and reports why others are not used;
//! - `settings` has the limits and variables;
//! - `fabric` owns libfabric's objects and keys; `block` has the cells that hold messages and short
//!   transfers.
//!
//! Limits: messages are neither encrypted nor signed, since libfabric does neither. A failed
//! operation ends the job. Over providers that send a stream of bytes, such as tcp, a word of a put
//! may be torn until the put is complete.

mod block;
mod choice;
mod connect;
mod ep;
mod fabric;
mod info;
mod message;
mod native;
mod permits;
mod progress;
mod quirks;
mod service;
mod settings;
mod shared;
mod silent_peer;
mod transport;
mod wire;

pub use settings::Tuning;
pub use transport::open;

use rushmem_transport::{Error, Provider};

/// The entry of this crate in the list of providers.
pub const PROVIDER: Provider = Provider {
    name: "ofi",
    sources: rushmem_derive::digest_of_sources!(),
    settings: settings::ALL,
    opens_libraries: true,
    without_rdma: false,
    network_amos: true,
    available: |host| choice::found(host).map_err(Error::Unavailable),
    parts: Some(transport::parts),
    diagnose: |args| choice::diagnose(args, transport::try_open),
    open: |args| open(args, Tuning::of(&*args.host)?),
};
