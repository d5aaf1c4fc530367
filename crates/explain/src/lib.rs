//! Who waits for whom: the status that each PE keeps of its long waits, and the conclusions that
//! follow from the statuses of all PEs.
//!
//! A PE writes a [`status::Status`] into the shared memory of its node when a wait lasts long. The
//! launcher, or a PE of the node, reads it without the help of the PE, adds what the kernel knows
//! of the process ([`report::PeReport`]), and explains the job from all reports. The crate is pure:
//! it reads no memory and asks no kernel, so jobs of any size can be constructed in tests.
#![forbid(unsafe_code)]

mod causes;
mod conclusion;
mod explain;
mod graph;
mod job;
pub mod place;
pub mod ranges;
pub mod report;
mod situation;
pub mod status;
mod steps;
mod table;
mod wording;
mod words;
pub mod writes;

pub use explain::explain;
