//! The membership of a PE in its job: its number, the other PEs, and the end of the job. A PE joins
//! its job before any symmetric memory exists.
//!
//! A PE opens one [`JobSession`]. Through it, the PE learns its number and the [`NodeMap`],
//! exchanges small records with every PE of the job, reports to the launcher that it has finalized,
//! and can end the whole job.
//!
//! [`proto`] and [`server`] are the two sides of Rushmem's own protocol, without any I/O; `oshrun`
//! runs the server; in a job without a launcher, a [`meeting`] does. Under other process managers
//! the session uses PMI-1, PMI-2 or PMIx, depending on the environment.
//!
//! This crate does not interpret records, maps no memory, and does not depend on an async runtime,
//! since it is part of `librushmem`.

mod base64;
pub mod config;
pub mod env;
mod error;
mod inherited;
mod launchers;
mod link;
mod managed;
pub mod meeting;
pub mod nodes;
pub mod proto;
mod records;
pub mod refused;
pub mod server;
mod session;
pub mod time_limit;
mod unix_socket;

pub use error::Error;
pub use inherited::node_memory;
pub use launchers::Protocol;
pub use managed::{MpiWorld, is_open_mpi_shut_out, mpi_world};
pub use nodes::NodeMap;
pub use proto::UnmatchedInits;
pub use records::{MAX_RECORD, Records};
pub use server::exit::{Exit, signal_name};
pub use session::{
    Aborter, JobSession, Joining, aborter_without_session, has_launcher, is_managed,
};
pub use unix_socket::PeerProcess;

/// The digest of the sources of this crate, which must be equal on all PEs of a job.
pub const SOURCES: u64 = rushmem_derive::digest_of_sources!();
