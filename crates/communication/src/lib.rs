//! How a PE reaches others and waits for them, by shared memory or over a network: accesses to
//! their memory, the order of these, the tools that observe them, signals and waits, and the status
//! that says what this PE waits for. An access to mapped memory that nothing observes is made
//! before it comes here, by `rushmem_runtime::api::rma`.
//!
//! It is a part of the runtime and no public interface: it changes without notice, and only crates
//! of Rushmem may use it. The transport is any implementation of the trait `Transport`.

pub mod access;
pub mod host;
pub mod links;
pub mod net;
pub mod observers;
pub mod status;
pub mod sync;

/// The digest of the sources of this crate, which must be equal on all PEs of a job.
pub const SOURCES: u64 = rushmem_derive::digest_of_sources!();
