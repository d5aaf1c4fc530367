//! What a PE knows of itself, before it reaches another one: its process, the call in which the
//! program is, its settings, its job, and the symmetric memory that is mapped here.
//!
//! It is a part of the runtime and no public interface: it changes without notice, and only crates
//! of Rushmem may use it.

pub mod call;
pub mod constants;
pub mod digest;
pub mod extension_constants;
pub mod job;
pub mod memory;
pub mod process;
pub mod settings;

pub use call::{Call, CallName};

/// The digest of the sources of this crate, which must be equal on all PEs of a job.
pub const SOURCES: u64 = rushmem_derive::digest_of_sources!();
