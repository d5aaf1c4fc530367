//! Rushmem over libfabric: Slingshot, Omni-Path, EFA, InfiniBand and everything else for which it
//! has a provider. One build serves all of them, since a provider's needs and capabilities are
//! queried when it is opened.
//!
//! Puts and gets are operations of libfabric. Atomic operations are messages to a service endpoint,
//! which the target's CPU carries out, because operations of a device are not atomic with respect
//! to those of the CPUs of a node on the same word. If `SHMEM_AMOS` leaves them to the network, all
//! of them are operations of libfabric.
//!
//! - `transport` and `wire` implement the traits of `rushmem-transport`;
//! - `progress` is the driver of the kit's progress engine; `service` serves peers;
//! - `shared` has the peers and the first loss, `connect` the addresses and keys that PEs exchange,
//!   `unconfirmed` finds out whether a silent peer still listens;
//! - `ep` is an endpoint of libfabric with its operations in flight, which connects by `turns`;
//!   `message` and `replies` are operations by the target's CPU, `native` those by the fabric;
//! - `choice`, `facts` and `quirks` select a provider of libfabric, describe it, and list known
//!   faults; `found` lists the providers of this machine; `settings` has the limits and variables,
//!   `defaults` those of libfabric;
//! - `wish` is what the user requests and `hints` what a job requires of a provider; `diagnosis`
//!   says of each one whether it can be used, or by `refusals` and `relaxations` what it refuses;
//! - `fabric` and `fid` own libfabric's objects, `raw` the keys that are not numbers; `block` is
//!   memory that libfabric uses.
//!
//! What it does not do: it does not encrypt or sign, since libfabric does not; it does not
//! reconnect (an operation that fails ends the job); over providers that are a stream of bytes,
//! such as tcp, it does not keep a word of a put whole until the put is complete.

mod block;
mod choice;
mod connect;
mod defaults;
mod diagnosis;
mod ep;
mod fabric;
mod facts;
mod fid;
mod found;
mod hints;
mod message;
mod native;
mod progress;
mod quirks;
mod raw;
mod refusals;
mod relaxations;
mod replies;
mod service;
mod settings;
mod shared;
mod transport;
mod turns;
mod unconfirmed;
mod wire;
mod wish;

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
    parts: Some(transport::parts),
    diagnose: diagnosis::diagnose,
    open: |with| open(with, Tuning::of(&*with.host)?),
};
