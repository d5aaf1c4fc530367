//! Rushmem over libfabric: Slingshot, Omni-Path, EFA, InfiniBand and whatever else it has a provider for,
//! without a build for each: what a provider asks and offers is looked up when it is opened.
//!
//! Puts and gets are the fabric's own. Atomic operations are messages to a service endpoint, carried out by
//! the target's CPU: libfabric's own are made by devices, or by software that reads, computes and compares,
//! and neither composes with the CPU's on one word, as PEs that share memory need. `SHMEM_OFI_AMOS=network` asks
//! for libfabric's own, and then all of the world's are.
//!
//! - `choice`, `facts` and `quirks`: which provider, what it is like, and which not; `found`: what of it this machine has;
//!   `settings` has our own limits, `defaults` what its variables tell;
//! - `fabric` and `fid`: what libfabric opens; `block` is memory that it uses;
//! - `ep`: an endpoint with the operations in flight on it; `message` and `replies`: atomic operations by the
//!   target's CPU; `atomics` and `native`: by the fabric;
//! - `service` serves peers, `thread` does so while nobody waits; `backoff` and `unconfirmed` are for who waits;
//! - `contact`, `shared`, `origin`, `endpoint` and `transport` are what the traits of `rushmem-transport` are made of.
//!
//! What it does not do: it does not encrypt or sign, since libfabric does not; it does not reconnect (an
//! operation that fails ends the job); over providers that are a stream of bytes, such as tcp, it does not
//! keep a word of a put whole until the put is complete.

mod atomics;
mod backoff;
mod block;
mod choice;
mod contact;
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
mod quirks;
mod replies;
mod service;
mod settings;
mod shared;
mod thread;
mod transport;
mod unconfirmed;

pub use rushmem_transport::kit::amos::Amos;
pub use settings::Tuning;
pub use transport::open;

use rushmem_transport::{Error, Provider, Setting};

/// The entry for a list of providers.
pub const PROVIDER: Provider = Provider {
    name: "ofi",
    settings: &[
        Setting {
            name: "SHMEM_OFI_PROVIDER",
            old_name: None,
            default: None,
            meaning: "the provider of libfabric to use, as `fi_info` names it; by default its first that fits",
        },
        Setting {
            name: "SHMEM_OFI_DOMAIN",
            old_name: None,
            default: None,
            meaning: "the domain (network device) of libfabric to use; by default its first",
        },
        Setting {
            name: "SHMEM_OFI_AMOS",
            old_name: None,
            default: Some("software"),
            meaning: "who carries out atomic operations over libfabric: software (the target's CPU) or network",
        },
    ],
    opens_libraries: true,
    without_rdma: false,
    available: |host| found::found(host).map_err(Error::Unavailable),
    open: |with| open(with, Tuning::default()),
};
