//! Collective algorithms as pure plans.
//!
//! A plan is an iterator of [`Step`]s, which one member of a team carries out in order. It is
//! computed only from the member's own index and from numbers that all members know, such as the
//! team's size; the runtime executes it. Therefore every algorithm can be checked for thousands of
//! teams without a process, a thread or a byte of shared memory.
//!
//! A plan is lazy and of constant size: it holds a few indices, never a list of steps. In every
//! function `n` is the size of the team, at least 1, and `me` the own index, less than `n`. All
//! members of a team run the same plans in the same order, each with its own index.
//!
//! This crate does not depend on memory, transports or types of elements. An index here is always
//! an index in a team, never a PE of the world.
//!
//! To add a collective:
//!
//! 1. If no plan does what is needed, write one here and test it in `tests/plans`. A new kind of
//!    `Step` also needs code in the simulator there and in `crates/runtime/src/coll/executor.rs`.
//! 2. Add a function to `crates/runtime/src/coll/collectives.rs`, or to `reductions.rs` beside it,
//!    that checks the arguments, enters the collective (`CollectiveEntry`) and runs the plan.
//! 3. Add the C functions to `crates/shmem-c/src/coll.rs` (`shmemx/coll.rs` for an extension,
//!    `active_set.rs` for a deprecated form), and what any routine needs
//!    (`crates/shmem-c/src/lib.rs`).
#![forbid(unsafe_code)]

pub mod binomial;
pub mod bruck;
pub mod central;
pub mod choice;
pub mod direct;
pub mod dissemination;
mod edge;
mod index;
pub mod neighbor_exchange;
mod own_block;
pub mod pairwise;
pub mod rabenseifner;
pub mod receive_buffer;
pub mod recursive_doubling;
pub mod ring;
pub mod scatter_all_gather;
mod step;
pub mod two_level;

pub use edge::{Edge, LINE_BYTES, Partner};
pub use step::{Buffer, DirectWork, Operand, Receivers, SentParts, Span, Step};

/// The digest of the sources of this crate, which must be equal on all PEs of a job.
pub const SOURCES: u64 = rushmem_derive::digest_of_sources!();
