//! The parts that tasks on this repository share: queries of cargo, running programs, installing
//! the packages of programs that are missing, the installation of what cargo has built, and the end
//! of a task.
//!
//! It depends on no task.
#![forbid(unsafe_code)]

pub mod installation;
pub mod needs;
pub mod process;
pub mod task;
pub mod workspace;
