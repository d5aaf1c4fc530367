//! Traces of jobs: the file into which each PE records its calls, and what is made of the files of
//! all PEs.
//!
//! A PE records into a ring in a mapped file ([`layout`]), so that what it has recorded survives
//! it. [`job::JobTrace`] has the files of a job on one clock, and [`chrome`] writes them in the
//! format that Perfetto opens.
#![forbid(unsafe_code)]

pub mod chrome;
pub mod job;
pub mod layout;
pub mod pe;
pub mod units;
