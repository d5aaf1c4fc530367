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
//! - `progress` is the driver of the service thread; `service` serves peers;
//! - `shared` has the peers and the first loss, `connect` the addresses and keys that PEs exchange,
//!   `probe` finds out whether a silent peer still listens;
//! - `ep` is an endpoint of libfabric with its operations in flight, limited by `permits`;
//!   `message` has the operations of the target's CPU, `native` those of the fabric;
//! - `info` is what libfabric offers and a job requires, `quirks` what is known of its providers
//!   besides; `choice` selects one, and says why others are not;
//! - `settings` has the limits and variables;
//! - `fabric` and `fid` own libfabric's objects, `raw` the keys that are not numbers; `block` is
//!   memory that libfabric uses.
//!
//! What it does not do: it does not encrypt or sign, since libfabric does not; it does not
//! reconnect (an operation that fails ends the job); over providers that are a stream of bytes,
//! such as tcp, it does not keep a word of a put whole until the put is complete.

mod block;
mod choice;
mod connect;
mod ep;
mod fabric;
mod fid;
mod info;
mod message;
mod native;
mod permits;
mod probe;
mod progress;
mod quirks;
mod raw;
mod service;
mod settings;
mod shared;
mod transport;
mod wire;

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
    available: |host| choice::found(host).map_err(Error::Unavailable),
    parts: Some(transport::parts),
    diagnose: |with| choice::diagnose(with, transport::try_open),
    open: |with| open(with, Tuning::of(&*with.host)?),
};
