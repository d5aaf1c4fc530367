//! The engine of operations: the order, the completion and the batching of the operations that
//! contexts issue over a network, once for all providers.
//!
//! A provider supplies a [`Wire`], which starts single operations. An [`Origin`] owns a wire and
//! the state of all operations that were issued over it. Contexts use an origin through an
//! [`Issuer`], which has its lock. A provider shares one struct among its wires and its service
//! thread, with a [`NetworkPe`] and [`Peers`](crate::peers::Peers), which implements
//! [`WireNetwork`] and [`Driver`](driver::Driver), and serves the requests of peers by
//! [`Serving`](target::Serving). `transport-ucx` is an example: see its `shared.rs`, `progress.rs`,
//! `wire.rs` and `service.rs`.
//!
//! | file | what it has |
//! |---|---|
//! | `endpoint` | the verbs of a context |
//! | `keys` | the peers and the keys of their memory |
//! | `issuer` | the lock of an origin, and the list of origins with unfinished operations |
//! | `origin` | the state of the operations that were issued, and how a call waits |
//! | `order` | fence and quiet, and the order between a put and a signal |
//! | `rma` | puts and gets, whole, in parts, strided, and puts with a signal |
//! | `requests` | the operations that the target's CPU carries out: atomics, signals, batches |
//! | `entries` | the operations of a request as bytes, and how a target carries them out |
//! | `batching` | the choice of entries that are sent together |
//! | `open_batches` | when the batches are sent |
//! | `replies` | the slots and destinations of the answers to requests |
//! | `tasks` | the tasks that await the completion of operations |
//! | `acks` | the numbers of requests, and the acknowledgments of their targets |
//! | `message` | the heads of requests and replies as bytes |
//! | `target` | how a target carries out requests in their order |
//! | `driver` | what a provider does for the threads that make progress |
//! | `service_thread` | the loop of the service thread |
//! | `wire` | the traits that a provider implements, and the steps to add one |
//!
//! A new rule for order, batches, acknowledgments or completion also changes what must hold in
//! `tests/simulated/model.rs`, and one for locks or tasks the model in `ci/loom/src/engine.rs`.

pub mod acks;
mod batching;
pub mod driver;
mod endpoint;
pub mod entries;
mod issuer;
pub mod keys;
pub mod message;
mod open_batches;
mod order;
mod origin;
mod replies;
mod requests;
mod rma;
pub mod service_thread;
pub mod target;
mod tasks;
mod wire;

pub use crate::segments::heap_blocks::Registered;
pub use endpoint::WireEndpoint;
pub use issuer::{Issuer, Issuers, WireLimit};
pub use origin::Origin;
pub use replies::{Replies, ReplyTable};
pub use wire::{
    NetworkAmos, NetworkPe, NextEvent, Polled, PolledUntil, PostOutcome, Remote, SentMessage,
    StreamOrder, TakeReply, Wire, WireCaps, WireNetwork, WriteEnd, WriteSent, refuse,
};

/// The locks and atomics of `issuer`, named in one place: the models in `ci/loom` compile that file
/// and `tasks` with loom's instead.
mod primitive {
    pub(crate) use rushmem_system::lock::{lock, try_lock};
    pub(crate) use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering};
    pub(crate) use std::sync::{Mutex, MutexGuard};
}

#[cfg(test)]
mod tests;
