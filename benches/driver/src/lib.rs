//! The drivers of the benchmarks beside this directory: each builds them, runs them and makes a
//! table of what they print.
//!
//! `cargo xtask bench-crowded`, `bench-peer`, `bench-races`, `bench-size` and `bench-threads` call them. What is
//! timed, and how, is the benchmarks' own matter; a driver knows their names, the names of the
//! values that they print, and what those should reach.
#![forbid(unsafe_code)]

pub mod crowded;
mod ours;
pub mod peer;
mod program;
pub mod races;
pub mod size;
pub mod threads;
