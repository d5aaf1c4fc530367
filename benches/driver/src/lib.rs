//! The drivers of the benchmarks in the directory `benches`: a driver builds benchmarks, runs them
//! and shows their results.
//!
//! `cargo xtask bench-crowded`, `bench-peer`, `bench-races`, `bench-size` and `bench-threads` call
//! them. The benchmarks decide what is timed and how. A driver knows only the names of benchmarks
//! and of the values that they print.
#![forbid(unsafe_code)]

pub mod crowded;
pub mod peer;
mod program;
pub mod races;
mod run_record;
pub mod size;
pub mod threads;
