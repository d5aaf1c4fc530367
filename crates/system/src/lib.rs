//! What the crates of Rushmem take from Linux itself, one subject a module. It is no public
//! interface: it changes without notice, and only crates of Rushmem may use it.
//!
//! - [`thread`], [`signals`], [`lock`]: threads that leave all signals to the program, and locks
//!   without poison.
//! - [`log`]: the events that `SHMEM_DEBUG` prints. [`stderr`]: lines on standard error.
//!   [`setting`]: environment variables.
//! - [`host`], [`clock`], [`devices`]: the name of this host, its clock and its network devices.
//!   [`descriptors`], [`limits`], [`maps`]: the file descriptors, the limits and the mappings of
//!   this process.
//! - [`refused_calls`]: the system calls that a filter refuses to this process.
//! - [`thread_sanitizer`]: the tool that may watch the threads of this process.
//! - [`interfaces`]: the addresses and ports at which sockets listen.
//! - [`codec`]: the encoding of what processes exchange.
//!
//! This crate imports no other one of this repository.

// The crates that need Linux depend on this one, so on other systems the build ends with this
// message.
#[cfg(not(target_os = "linux"))]
compile_error!(
    "Rushmem runs on Linux alone: PEs share memory files, wait by futexes and are watched through /proc. On macOS \
     and Windows use it in a container or a virtual machine with Linux."
);

pub mod clock;
pub mod codec;
pub mod descriptors;
pub mod devices;
pub mod host;
pub mod interfaces;
pub mod limits;
pub mod lock;
pub mod log;
pub mod maps;
pub mod refused_calls;
pub mod setting;
pub mod signals;
pub mod stderr;
pub mod thread;
pub mod thread_sanitizer;

/// The digest of the sources of this crate, which must be equal on all PEs of a job.
pub const SOURCES: u64 = rushmem_derive::digest_of_sources!();
