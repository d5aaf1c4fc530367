//! The boundary between the runtime and the networks that move bytes between PEs.
//!
//! It contains:
//!
//! - the traits [`Transport`] and [`Endpoint`], and the plain data that they take and return;
//! - [`mem`], the accesses to symmetric memory that is mapped into the calling process. On the own
//!   node the runtime calls it inline: a virtual call would cost more than the access itself;
//! - [`origin`], the engine of all providers: the order, completion and batching of what contexts
//!   issue;
//! - [`kit`], what all providers are built from, and [`descriptors`] and [`device`], what they
//!   query of the machine.
//!
//! A provider (a crate `transport-*`) imports this crate, `wire`, `log` and its own bindings. The
//! runtime imports this crate and no provider. To write a provider, start with [`Provider`], the
//! trait [`Transport`] and the template [`null`]. The tests that every provider must pass are in
//! `ci/conformance`.
//!
//! This crate imports no other crate of this repository but `log`.

pub mod activity;
mod amos;
pub mod descriptors;
pub mod device;
mod diagnosis;
mod directory;
mod endpoint;
mod error;
mod fault;
pub mod kit;
pub mod mem;
mod nic;
pub mod null;
pub mod origin;
mod pe;
mod provider;
pub mod setting;
pub mod thread;
mod verbs;

pub use activity::NetworkActivity;
pub use amos::Amos;
pub use diagnosis::{Diagnosis, Verdict};
pub use directory::{Directory, PeRecord};
pub use endpoint::Endpoint;
pub use error::Error;
pub use fault::{Fault, LocalAccess};
pub use nic::NicName;
pub use pe::{Pe, TeamPe};
pub use provider::{Caps, Found, Host, ListParts, MANY_PAIRS, Open, Provider, Proxy, Transport};
pub use setting::Setting;
pub use verbs::{
    AmoOp, AmoRequest, AmoWidth, Completion, Follows, Get, Key, LocalBuf, OldValue, Put,
    RemoteAddr, Segment, SignalUpdate, StridedBlocks,
};
