//! The steps by which a PE becomes part of its job: [`init`] calls them in order, [`join`]
//! exchanges records with all PEs and maps the memory of the machine, [`connect`] opens a transport
//! to the PEs whose memory is not mapped.

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
