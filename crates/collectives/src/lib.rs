//! Collective algorithms as pure plans.
//!
//! A collective is decided here and executed elsewhere: a plan is an iterator of [`Step`]s that one
//! member of a team carries out in order, computed from the team's size and the member's own index
//! alone. So every algorithm can be checked for thousands of teams without a process, a thread or a
//! byte of shared memory.
//!
//! This crate must never know memory, transports, types of elements or PEs of the world: an index
//! here is always an index in a team.
#![forbid(unsafe_code)]

mod step;

pub use step::{Place, Span, Step};
