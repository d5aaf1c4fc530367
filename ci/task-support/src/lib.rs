//! What tasks on this repository work with: cargo and what it knows, other programs, and packages
//! that bring them.
//!
//! It depends on no task.
#![forbid(unsafe_code)]

pub mod needs;
pub mod process;
pub mod workspace;
