//! The race detector of Rushmem: it finds accesses to symmetric memory that nothing orders.
//!
//! Each PE checks its own calls, and, in a program that was compiled for it, its own loads and
//! stores. What it remembers of them is in memory that all PEs share ([`areas`]): the PE that
//! makes an access to the memory of another one marks it there. Whether two accesses are ordered
//! is known by vector clocks ([`clock`]) of threads and of operations in flight ([`actors`]), which
//! are joined where OpenSHMEM orders ([`sync_words`], [`collectives`]).
//!
//! This crate is a part of librushmem-race, which the runtime opens only where a user wants it.

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
