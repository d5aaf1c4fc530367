//! What OpenSHMEM does, above symmetric memory and below every language.
//!
//! Folders are layers, and each imports only those before it: `base`, `memory`, `net`, `sync`, `teams`, `coll`, `api`, `setup`.
//! The functions of the standard are in [`setup`], [`heap`], [`team`], [`ctx`], [`rma`], [`amo`], [`signal`], [`collectives`],
//! [`wait`], [`order`] and [`lock`]. They take what the C functions take, after the name of the call for messages; they check
//! it, find the PE's copy of an address and hand the access to `transport::mem`. On-node nothing else is on the path: no
//! lock, no allocation, no system call, no log.
//!
//! # Safety
//!
//! Routines that take addresses are unsafe. They check what they can (that an address is symmetric, its bounds, its alignment),
//! and have one precondition beside those that they name: no Rust reference points to the memory that they name, here or on
//! the PE that they name, while the call lasts and, if it completes later, until it is complete. Other PEs may access
//! symmetric memory at any time.
//!
//! The runtime names no provider and no launcher, and knows nothing of C names or types.

mod api;
mod base;
mod coll;
mod memory;
mod net;
pub mod setup;
mod sync;
mod teams;

pub use api::{amo, ctx, heap, lock, rma, signal, team, wait};
pub use base::call::Call;
pub use base::handle::{ContextHandle, TeamHandle};
pub use base::{constants, extension_constants, settings, stdio, time};
pub use coll::combine::Combine;
pub use coll::{alltoallv, collectives, combine};
pub use net::contexts::{Context, World};
pub use net::order;
