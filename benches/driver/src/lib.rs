//! The drivers of the benchmarks beside this directory: each builds them, runs them and shows what
//! they print.
//!
//! `cargo xtask bench-crowded`, `bench-peer`, `bench-races`, `bench-size` and `bench-threads` call
//! them. The benchmarks decide what is timed, and how; a driver knows their names and the names of
//! the values that they print.
#![forbid(unsafe_code)]

pub mod crowded;
pub mod peer;
mod program;
pub mod races;
mod run_record;
pub mod size;
pub mod threads;
