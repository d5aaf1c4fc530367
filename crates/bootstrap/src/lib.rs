//! The membership of a PE in its job: its number, the other PEs, and the end of the job. A PE joins
//! its job before any symmetric memory exists.
//!
//! - `membership`: a PE has one [`Membership`]. Through it, the PE learns its number and the
//!   [`NodeMap`], exchanges small records with every PE of the job, reports to the launcher that it
//!   has finalized, and can end the whole job.
//! - `launched`: how a process that a launcher has started joins its job: by Rushmem's own protocol
//!   under `oshrun`, otherwise by PMI-1, PMI-2 or PMIx.
//! - [`unlaunched`]: how processes join a job that no launcher has started. They find each other at
//!   a meeting, which one of them serves.
//! - `node`: the PEs of one node, and how they find each other if `oshrun` has not started them.
//! - [`launcher`]: the rules of a job at its launcher, without any I/O; `oshrun` runs them, and so
//!   does the process that serves a meeting. [`proto`] has the messages between both sides.
//!
//! This crate does not interpret records, maps no memory, and does not depend on an async runtime,
//! since it is part of `librushmem`.

mod base64;
pub mod config;
mod connection;
pub mod env;
mod error;
mod launched;
pub mod launcher;
mod membership;
mod node;
mod process_manager;
pub mod proto;
mod records;
pub mod time_limit;
mod unix_socket;
pub mod unlaunched;
mod watch;

pub use error::Error;
pub use launched::inherited::node_memory;
pub use launched::is_open_mpi_shut_out;
pub use launched::mpi::{MpiWorld, world as mpi_world};
pub use launcher::exit::{Exit, signal_name};
pub use membership::route::Protocol;
pub use membership::{
    Aborter, JoinOptions, Membership, aborter_without_joining, has_launcher, has_process_manager,
};
pub use node::map::NodeMap;
pub use proto::UnmatchedInits;
pub use records::{MAX_RECORD, Records};
pub use unix_socket::PeerProcess;

/// The digest of the sources of this crate, which must be equal on all PEs of a job.
pub const SOURCES: u64 = rushmem_derive::digest_of_sources!();
