//! The implementation of OpenSHMEM, above symmetric memory and below every language.
//!
//! The chapters of the standard, and the start and the end of a PE. They are made of two crates:
//! `rushmem_pe` has what a PE knows of itself, `rushmem_communication` how it reaches other PEs and
//! waits for them. The functions of the standard are in [`start`], [`setup`], [`heap`], [`team`],
//! [`ctx`], [`rma`], [`amo`], [`signal`], [`collectives`], [`wait`], [`order`] and [`lock`]. They
//! take the name of the call, for messages, and then the arguments of the C function.
//!
//! An access to a PE of the same node checks its arguments, finds the PE's copy of the address and
//! calls `transport::mem`. This path contains nothing else: no lock, no allocation, no system call,
//! no log.
//!
//! The runtime depends on no provider and on no launcher: `init` gets the providers as an argument,
//! and `rushmem_bootstrap` knows the launchers.
//!
//! # Safety
//!
//! Routines that take addresses are unsafe. They check what they can (that an address is symmetric,
//! its bounds, its alignment). In addition to the preconditions that they name, they have one in
//! common: while the call lasts, and until it is complete if it completes later, no Rust reference
//! points to the memory that they access, here or on the other PE. Other PEs may access symmetric
//! memory at any time.

mod api;
mod buffers;
pub mod build;
mod coll;
mod diagnosis;
mod exit;
mod message_purpose;
mod own_pe;
mod reports;
pub mod start;
mod teams;
#[cfg(test)]
mod tests;

pub use api::buffers::{register as register_buffer, unregister as unregister_buffer};
pub use api::{amo, ctx, heap, limits, local, lock, requests, rma, signal, team, wait};
pub use coll::combine::Combine;
pub use coll::{alltoallv, collectives, combine, gather, nonblocking, private, reductions, step};
pub use diagnosis::crash;
pub use rushmem_communication::access::contexts::{Context, DefaultContext, PeArgument};
pub use rushmem_communication::access::order;
pub use rushmem_pe::call::thread;
pub use rushmem_pe::call::warning::claim as claim_message;
pub use rushmem_pe::digest::{digest, digest_of_bytes};
pub use rushmem_pe::job::handle::{ContextHandle, RequestHandle, TeamHandle};
pub use rushmem_pe::memory::address::{ExistingPe, PeNumber};
pub use rushmem_pe::process::{also_flush, time};
pub use rushmem_pe::{Call, CallName, call, constants, extension_constants, settings};

/// Exit and query routines (OpenSHMEM 1.6, §9.1 and §9.2), and what tools query about this machine.
/// Initialization is in [`start`].
pub mod setup {
    pub use crate::api::queries::{
        addr_accessible, my_pe, n_pes, pe_accessible, ptr, query_initialized, query_thread,
        team_ptr,
    };
    pub use crate::diagnosis::watchdog::explain_on_request;
    pub use crate::exit::at_exit::{finalize_at_exit, finalize_due};
    pub use crate::exit::finalize::{finalize, global_exit, inits_in_force};
    pub use crate::start::connect::transport;
    pub use crate::start::diagnose::{Diagnosed, OnThisMachine, diagnose, on_this_machine};
    pub use rushmem_bootstrap::has_launcher;
    pub use rushmem_pe::memory::huge_pages::make_huge_page;
}
