//! The race detector of Rushmem: it finds accesses to symmetric memory that nothing orders.
//!
//! Each PE checks its own calls of the library. If the program was compiled for the detector, the
//! PE also checks its own loads and stores. The PE that makes an access records it in memory that
//! all PEs share ([`areas`]), in the shadow of the accessed bytes ([`shadow`]). Vector clocks
//! ([`clock`]) of threads and of operations in flight ([`actors`]) tell whether two accesses are
//! ordered. The clocks are joined where OpenSHMEM orders accesses ([`sync_words`],
//! [`collectives`]).
//!
//! This crate is linked into librushmem-race, which the runtime opens for `SHMEM_CHECK=races` only.

pub mod access;
pub mod actors;
pub mod areas;
pub mod clock;
pub mod collectives;
pub mod known;
pub mod own_memory;
pub mod private;
pub mod process;
pub mod report;
pub mod shadow;
pub mod shared;
pub mod sites;
pub mod symbols;
pub mod sync_words;
pub mod variables;
