//! Rushmem over libfabric: Slingshot, Omni-Path, EFA, InfiniBand and whatever else it has a provider for,
//! without a build for each: what a provider asks and offers is looked up when it is opened.
//!
//! Puts and gets are the fabric's own. Atomic operations are messages to a service endpoint, carried out by
//! the target's CPU: libfabric's own are made by devices, or by software that reads, computes and compares,
//! and neither composes with the CPU's on one word, as PEs that share memory need. Where the job leaves them to the
//! network (`SHMEM_AMOS`), all of the world's are libfabric's own.
//!
//! - `endpoint` and `transport` are what the traits of `rushmem-transport` are made of, `origin` is what the verbs are made of;
//! - `progress` says who polls and who sleeps, `service` is what whoever polls does for the peers;
//! - `shared` has the peers and the eps, `connect` what PEs tell each other, `unconfirmed` whether a silent one is there;
//! - `ep` is an endpoint of libfabric with the operations in flight on it; `message` and `replies` are atomic operations by the
//!   target's CPU, `atomics` and `native` those by the fabric;
//! - `choice`, `facts` and `quirks` say which provider of libfabric, what it is like, and which not; `found` what of it this
//!   machine has; `settings` has our own limits and variables, `defaults` what libfabric's variables tell it;
//! - `fabric` and `fid` are what libfabric opens, `raw` its keys that are no numbers; `block` is memory that it uses.
//!
//! What it does not do: it does not encrypt or sign, since libfabric does not; it does not reconnect (an
//! operation that fails ends the job); over providers that are a stream of bytes, such as tcp, it does not
//! keep a word of a put whole until the put is complete.

mod atomics;
mod block;
mod choice;
mod connect;
mod defaults;
mod endpoint;
mod ep;
mod fabric;
mod facts;
mod fid;
mod found;
mod message;
mod native;
mod origin;
mod progress;
mod quirks;
mod raw;
mod replies;
mod service;
mod settings;
mod shared;
mod transport;
mod unconfirmed;

pub use settings::Tuning;
pub use transport::open;

use rushmem_transport::{Error, Provider};

/// The entry for a list of providers.
pub const PROVIDER: Provider = Provider {
    name: "ofi",
    settings: settings::ALL,
    opens_libraries: true,
    without_rdma: false,
    network_amos: true,
    available: |host| found::found(host).map_err(Error::Unavailable),
    open: |with| open(with, Tuning::default()),
};
