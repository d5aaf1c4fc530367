//! The drivers of the benchmarks in the directory `benches`: a driver builds benchmarks, runs them
//! and shows their results.
//!
//! `cargo xtask bench-crowded`, `bench-peer`, `bench-races`, `bench-size` and `bench-threads` call
//! them. A driver chooses the arguments and the environment of benchmarks. What they do and time is
//! their own matter, except the start and the end of jobs, which only a driver can time.
#![forbid(unsafe_code)]

pub mod crowded;
pub mod peer;
mod program;
pub mod races;
mod run_record;
pub mod size;
pub mod threads;
