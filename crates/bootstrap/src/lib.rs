//! The membership of a PE in its job: its identity, the other PEs, and how the job ends. A PE needs
//! it before any symmetric memory exists.
//!
//! A PE opens one [`Session`]. It learns its number and the [`NodeMap`], can exchange small records
//! with every PE of the job, report to the launcher that it has finalized, and end the whole job.
//! [`proto`] and [`server`] are the two sides of Rushmem's own protocol, without any I/O; `oshrun`
//! runs the server. The session joins other process managers through PMI-1, PMI-2 or PMIx, as the
//! environment shows.
//!
//! This crate does not interpret records, maps no memory, and does not depend on an async runtime,
//! since it is part of `librushmem`.

mod detect;
pub mod env;
mod error;
mod exit;
pub mod host_limit;
mod inherited;
mod link;
mod managed;
pub mod nodes;
pub mod process_state;
pub mod proto;
pub mod server;
mod session;

pub use detect::Protocol;
pub use error::Error;
pub use exit::{Exit, signal_name};
pub use inherited::node_memory;
pub use nodes::NodeMap;
pub use session::{Aborter, Session};
