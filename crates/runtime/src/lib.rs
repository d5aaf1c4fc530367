//! The implementation of OpenSHMEM, above symmetric memory and below every language.
//!
//! The modules are layers, and each imports only those before it: `constants`, `digest`, `settings`,
//! `process`, `call`, `job`, `memory`, `observers`, `net`, `diagnosis`, `sync`, `teams`, `coll`,
//! `api`, `end`, `start`. The functions of the standard are in [`setup`], [`heap`], [`team`],
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
mod call;
mod coll;
pub mod constants;
mod diagnosis;
mod digest;
mod end;
pub mod extension_constants;
mod job;
mod memory;
mod net;
mod observers;
mod process;
pub mod settings;
mod start;
mod sync;
mod teams;

pub use api::{amo, ctx, heap, local, lock, rma, signal, team, wait};
pub use call::thread;
pub use call::warning::claim as claim_message;
pub use call::{Call, CallName};
pub use coll::combine::Combine;
pub use coll::{alltoallv, collectives, combine, nonblocking, private, requests, step};
pub use digest::{digest, digest_of_bytes};
pub use end::crash;
pub use job::handle::{ContextHandle, RequestHandle, TeamHandle};
pub use memory::address::{ExistingPe, PeNumber};
pub use net::contexts::{Context, DefaultContext, PeArgument};
pub use net::order;
pub use process::{also_flush, time};

/// Library setup, exit and query routines (OpenSHMEM 1.6, §9.1 and §9.2), and what tools query
/// about this machine.
pub mod setup {
    pub use crate::api::queries::{
        addr_accessible, my_pe, n_pes, pe_accessible, ptr, query_initialized, query_thread,
        team_ptr,
    };
    pub use crate::end::at_exit::{finalize_at_exit, finalize_due};
    pub use crate::end::finalize::{finalize, global_exit, inits_in_force};
    pub use crate::memory::huge_pages::make_huge_page;
    pub use crate::start::by_id::{UNIQUE_ID_BYTES, unique_id};
    pub use crate::start::connect::path::transport;
    pub use crate::start::diagnose::{Diagnosed, OnThisMachine, diagnose, on_this_machine};
    pub use crate::start::init::{init, init_by_id, init_thread, start_pes};
    pub use rushmem_bootstrap::has_launcher;
}
