//! What tasks on this repository work with: cargo and what it knows, other programs, and packages
//! that bring them.
//!
//! It must know no task, and nothing of how the library works.
#![forbid(unsafe_code)]

pub mod needs;
pub mod process;
pub mod workspace;
