//! The engine of operations: the order, the completion and the batches of what contexts issue over
//! a network, once for all providers.
//!
//! A provider supplies a [`Wire`], which starts single operations; one [`Origin`] owns it, together
//! with all that is known of what was issued. Contexts use an origin by an [`Issuer`], which has
//! its lock. A provider shares one struct among its wires and its service thread, with a
//! [`NetworkPe`] and [`Peers`](crate::peers::Peers). `transport-tcp` is an example: see its
//! `shared.rs`, `progress.rs` and `wire.rs`.
//!
//! | file | what it decides |
//! |---|---|
//! | `endpoint` | the verbs of a context |
//! | `issuer` | the lock of an origin, and who completes what calls leave unfinished |
//! | `origin` | what is known of what was issued, and how a call waits |
//! | `order` | what a fence and a quiet are, and how the order between a put and a signal is kept |
//! | `rma` | puts and gets, whole, in parts, strided |
//! | `requests` | what the target's CPU carries out: atomic operations, signals, batches |
//! | `batching` | which operations travel together; `batch`: the bytes in which they do |
//! | `replies` | where the answers to requests go |
//! | `acks` | the numbers of requests, and the acknowledgments of their targets |
//! | `message` | requests and replies as bytes |
//! | `target` | how a target carries out requests in their order |
//! | `wire` | what a provider supplies |

pub mod acks;
pub mod batch;
mod batching;
mod endpoint;
mod issuer;
pub mod message;
mod order;
mod origin;
mod replies;
mod requests;
mod rma;
pub mod target;
mod wire;

pub use endpoint::{Issuing, WireEndpoint};
pub use issuer::{Issuer, Issuers, PollingThread};
pub use origin::Origin;
pub use replies::{Replies, ReplyTable};
pub use wire::{
    NetworkPe, Payload, PolledUntil, PostOutcome, StreamOrder, TakeReply, Wire, WireCaps,
    WireNetwork, WriteEnd, WriteSent,
};

#[cfg(test)]
mod tests;
