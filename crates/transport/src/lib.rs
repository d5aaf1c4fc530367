//! The boundary between the runtime and the networks that move bytes between PEs.
//!
//! - The traits [`Transport`] and [`Endpoint`], and the plain data that they take and return:
//!   `provider`, `verbs`, `amo`, `buffer`, `pe`, `error`.
//! - [`mem`]: accesses to symmetric memory that is mapped into the calling process. The runtime
//!   calls these functions directly, since a virtual call would cost more than the access itself.
//! - [`engine`]: the operations of contexts over any network: their order, batches,
//!   acknowledgments, replies and completion.
//! - [`NetworkTransport`]: the transport over any network of a provider.
//! - [`progress`]: how threads wait and wake each other.
//! - [`peers`]: the peers of a PE, and the report of a loss. [`segments`]: the registered memory.
//!
//! A provider (a crate `transport-*`) imports this crate, `connect`, `derive`, `system` and its own
//! bindings. The runtime imports no provider. To write a provider, start with the first comment of
//! `engine/wire.rs`, then [`Provider`]. The tests that every provider must pass are in
//! `ci/conformance`.
//!
//! This crate imports no other crate of this repository but `derive` and `system`.

mod amo;
mod buffer;
pub mod engine;
mod error;
pub mod mem;
mod network;
pub mod null;
mod pe;
pub mod peers;
pub mod progress;
mod provider;
pub mod segments;
mod verbs;

pub use amo::{AmoOp, AmoSet, AmoWidth};
pub use buffer::{Buffer, Dest, DestBuf, LocalBuf, Source, SourceBuf};
pub use error::Error;
pub use network::{NetworkTransport, OpenedNetwork};
pub use pe::{Pe, PeMap, SharedPeMap, TeamPe};
pub use peers::directory::{Directory, PeRecord};
pub use progress::state::NetworkActivity;
pub use provider::{
    Amos, AwaitedOperations, Caps, Diagnosis, EndpointUser, Found, Host, ListParts, MANY_PAIRS,
    Open, Provider, Proxy, Transport, Unreported, Verdict, WaitReport,
};
pub use verbs::{
    AmoRequest, Completion, Endpoint, Get, Key, OldValue, Put, RemoteAddr, Segment, SignalOrder,
    StridedBlocks, Transfer,
};

/// The digest of the sources of this crate, which must be equal on all PEs of a job.
pub const SOURCES: u64 = rushmem_derive::digest_of_sources!();
