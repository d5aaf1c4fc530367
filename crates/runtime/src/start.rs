//! The steps by which a process becomes a PE of its job. [`init`] has the routines and the order.
//! Each step makes a type that the next one consumes, in a file with its name (`publish` is in
//! [`map`], `observe` and `meet` in [`open`]):
//!
//! ```text
//! identify -> Identified -> exchange -> Exchanged -> agree -> Compatible -> map -> Mapped
//! -> publish -> Published -> join -> Joined -> connect -> Connected
//! -> observe -> Observed -> open -> Opened -> meet
//! ```
//!
//! An init after the last finalize begins with `Joined`. What the PEs decide together, they decide
//! by functions of the records that all have ([`agree`], `connect::negotiation`), without a look at
//! their own process, so that all decide alike.

mod agree;
pub(crate) mod by_id;
mod child;
pub(crate) mod connect;
pub(crate) mod diagnose;
pub(crate) mod error;
mod exchange;
mod identify;
pub(crate) mod init;
mod join;
mod map;
mod open;
#[cfg(test)]
mod simulated;
mod user_settings;
