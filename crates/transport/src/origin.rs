//! The operations that contexts issue over a network: their order, their completion, the batches of
//! small ones and the waits, once for all providers.
//!
//! A provider supplies a [`Wire`], which starts single operations; one [`Origin`] owns it, together
//! with all that is known of what was issued. Contexts use an origin by an [`Issuer`], which has
//! its lock.
//!
//! | file | what it decides |
//! |---|---|
//! | `order` | what a fence and a quiet are, and how the order between a put and a signal is kept |
//! | `requests` | what the target's CPU carries out: atomic operations, signals, batches |
//! | `transfers` | puts and gets, whole, in parts, strided |
//! | `batches` | which operations travel together |
//! | `blocks` | the keys of a heap that is registered in blocks |
//! | `slots` | where the answers to requests go |
//! | `replies` | how a reply that another thread takes comes to its origin |
//! | `waits` | how a call waits |
//! | `state` | what is known of what was issued |
//! | `endpoint` | the verbs |
//! | `issuer` | the lock of an origin, and who completes what calls leave unfinished |

mod batches;
mod blocks;
mod endpoint;
mod issuer;
mod order;
mod replies;
mod requests;
mod slots;
mod state;
mod transfers;
mod waits;
mod wire;

pub use endpoint::{Issuing, WireEndpoint};
pub use issuer::{Issuer, Issuers, PollingThread};
pub use replies::{Replies, ReplyTable};
pub use state::Origin;
pub use wire::{
    Payload, PolledUntil, PostOutcome, StreamOrder, TakeReply, Wire, WireCaps, WireNetwork,
    WriteEnd,
};

#[cfg(test)]
mod tests;
