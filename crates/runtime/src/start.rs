//! The steps by which a PE becomes part of its job: [`init`] lists them, [`join`] exchanges records
//! with all PEs and maps the memory of the node, [`connect`] opens a transport to the PEs of other
//! nodes.

mod algorithm_table;
pub(crate) mod by_id;
mod child;
pub(crate) mod connect;
pub(crate) mod diagnose;
pub(crate) mod init;
mod join;
mod locality;
mod mistakes;
mod record;
