//! The parts that tasks on this repository share: queries of cargo, running programs, and
//! installing the packages of programs that are missing.
//!
//! It depends on no task.
#![forbid(unsafe_code)]

pub mod needs;
pub mod process;
pub mod workspace;
