//! Initialization and finalization (OpenSHMEM 1.6, §9.1), and queries about this PE and the others.
//!
//! `join` shows how a PE becomes part of its job; `connect` how it reaches PEs on other nodes.

mod addresses;
mod algorithms;
mod amos;
mod child;
mod connect;
mod cpus;
mod crash;
mod diagnose;
mod finalize;
mod init;
mod join;
mod leave;
mod locality;
mod mistakes;
mod path;
mod probe;
mod queries;
mod races;
mod record;
mod statistics;
mod threads;
mod trace;
mod transport_choice;
mod warnings;
mod watchdog;

pub use crate::memory::huge_pages::make_huge_page;
pub use connect::{OnThisMachine, on_this_machine};
pub use diagnose::{Diagnosed, diagnose};
pub use finalize::{finalize, global_exit, inits_in_force};
pub use init::{init, init_thread, start_pes};
pub use path::transport;
pub use queries::{
    addr_accessible, my_pe, n_pes, pe_accessible, ptr, query_initialized, query_thread, team_ptr,
};
