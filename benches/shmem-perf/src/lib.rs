//! `shmem-perf`: measures an OpenSHMEM library, and shows what it found.
//!
//! The loops that are timed are C, so that the `oshcc` of any library can build them with its own header. Everything else is
//! here: the flags, what is measured for how long, the statistics, and the output. A run leaves a [`record::Record`]; reports and
//! comparisons read such records and nothing else.

pub mod compare;
#[cfg(test)]
mod fixture;
mod flags;
mod load;
mod naming;
pub mod record;
pub mod report;
pub mod units;
