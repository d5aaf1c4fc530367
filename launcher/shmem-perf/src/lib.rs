//! `shmem-perf`: measures an OpenSHMEM library, and shows the results.
//!
//! The timed loops are C, so that the `oshcc` of any library can build them with its own header.
//! Everything else is here: the flags, the plan, the statistics, and the output. A run makes a
//! [`record::Record`], which `--output` writes to a file; reports and comparisons read such files.

mod answer;
pub mod compare;
pub mod compile;
mod entry;
#[cfg(test)]
mod fixture;
mod job;
mod library;
mod machine;
mod matrix;
mod measure;
mod naming;
mod network;
mod operation;
mod options;
mod output;
mod plan;
mod print;
pub mod record;
mod repeat;
pub mod report;
mod run;
mod rushmem;
mod socket;
pub mod statistics;
mod text;
pub mod units;
mod wire;
