//! Collectives: executes the plans of `rushmem-collectives` over signals and symmetric ranges.
//!
//! It chooses no algorithm; the crate of the plans does.

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
