//! `shmem-perf`: measures an OpenSHMEM library, and shows what it found.
//!
//! The loops that are timed are C, so that the `oshcc` of any library can build them with its own header. Everything else is
//! here: the flags, what is measured for how long, the statistics, and the output. A run leaves a [`record::Record`]; reports and
//! comparisons read such records and nothing else.

mod answer;
mod bar;
pub mod compare;
pub mod compile;
mod csv;
mod entry;
#[cfg(test)]
mod fixture;
mod flags;
mod library;
pub mod load;
mod machine;
mod matrix;
mod measure;
mod naming;
mod network;
mod operation;
mod options;
mod output;
mod pairs;
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
mod world;
