//! Collectives: executes the plans of the crate `rushmem-collectives` over signals and symmetric
//! ranges. That crate also has the table by which algorithms are chosen.

pub mod alltoallv;
pub mod collectives;
pub mod combine;
mod composition;
mod direct;
pub(crate) mod entry;
mod executor;
pub mod nonblocking;
pub mod private;
pub mod requests;
pub mod step;
