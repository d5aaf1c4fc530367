//! Collectives: plans of `rushmem-collectives`, carried out over channels and symmetric ranges.
//!
//! It chooses no algorithm; that is for the plans' crate.

pub mod alltoallv;
pub mod collectives;
pub mod combine;
mod direct;
pub(crate) mod entered;
pub(crate) mod execute;
