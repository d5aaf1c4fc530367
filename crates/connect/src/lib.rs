//! How two processes of a job find out over a socket that both belong to the job.
//!
//! [`Secret`] is what only they know, and [`handshake`] is the exchange of messages by which each
//! proves that it knows it. [`sealed`] encrypts what follows, where that is confidential. These
//! three do no input or output. [`strangers`] holds the connections whose other end has not proved
//! anything yet, [`connect`] connects to a known port, and [`Attempts`] says when to try again.
//!
//! **A relay gains nothing.** A process between two others can pass on their handshake, but learns
//! neither the secret nor the keys of their session, since both are derived from the secret and
//! are not sent. So it can end or delay a sealed connection, but cannot read or change it. A stream
//! that is not sealed, as that of the TCP transport, is bound to the address of the end that
//! accepts: a claim made to the address of a relay is refused at any other address.
//!
//! `crates/shmem-c/tests/sites/meetings.rs` has the cases of strangers, and SECURITY.md what they
//! can and cannot do.
#![forbid(unsafe_code)]

mod attempts;
mod connect;
pub mod handshake;
pub mod sealed;
mod secret;
pub mod strangers;
mod timed;

pub use attempts::Attempts;
pub use connect::connect;
pub use secret::{Secret, nonce};
pub use timed::TimedReads;

/// The digest of the sources of this crate, which must be equal on all PEs of a job.
pub const SOURCES: u64 = rushmem_derive::digest_of_sources!();
