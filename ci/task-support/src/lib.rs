//! The parts that tasks on this repository share: cargo's view of it, other programs, and packages
//! that bring them.
//!
//! It depends on no task.
#![forbid(unsafe_code)]

pub mod needs;
pub mod process;
pub mod workspace;
