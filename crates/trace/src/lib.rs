//! Traces of jobs: the format of the file in which each PE records its calls, and the analysis of
//! the files of all PEs.
//!
//! A PE records into a ring in a mapped file ([`layout`]), so that the records survive the process.
//! [`job::JobTrace`] has the records of all PEs on one clock, and [`chrome`] writes them in the
//! format that Perfetto opens. The runtime writes the rings.
#![forbid(unsafe_code)]

pub mod chrome;
pub mod job;
pub mod layout;
pub mod pe;
pub mod units;

/// The digest of the sources of this crate, which must be equal on all PEs of a job.
pub const SOURCES: u64 = rushmem_derive::digest_of_sources!();
