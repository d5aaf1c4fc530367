//! Collectives of the standard and of the extensions. A routine checks its arguments, chooses a
//! plan of the crate `rushmem-collectives`, and executes its steps by signals and by copies of
//! symmetric ranges. That crate also has the table by which algorithms are chosen.
//! [`same_collective`] checks that all members are in the same one.

pub mod alltoallv;
pub mod collectives;
pub mod combine;
mod composition;
mod direct;
pub(crate) mod entry;
mod executor;
pub mod gather;
pub(crate) mod heap_change;
pub mod nonblocking;
pub mod private;
pub mod reductions;
pub mod requests;
pub(crate) mod same_collective;
pub mod step;
