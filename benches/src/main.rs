//! The drivers of the benchmarks in the directory `benches`: a driver builds benchmarks, runs them
//! and shows their results. The programs in `bin` are no drivers.
//!
//! A driver chooses the arguments and the environment of benchmarks. What they do and time is their
//! own matter, except the start and the end of jobs, which only a driver can time.
#![forbid(unsafe_code)]

mod counts;
mod crowded;
mod peer;
mod program;
mod races;
mod run_record;
mod size;
mod threads;

use std::process::ExitCode;

use clap::Parser;
use task_support::task;

#[derive(Parser)]
#[command(bin_name = "cargo xtask")]
enum Task {
    /// Count instructions of short routines, on a node and over a network
    Counts(counts::CountsFlags),
    /// Measure small operations where CPUs are crowded
    BenchCrowded(crowded::CrowdedFlags),
    /// Compare with another OpenSHMEM
    BenchPeer(peer::PeerFlags),
    /// Measure the time and the memory that the race detector takes
    BenchRaces(races::RacesFlags),
    /// Measure time and memory of jobs of many PEs
    BenchSize(size::SizeFlags),
    /// Compare collectives at SHMEM_THREAD_MULTIPLE and at SHMEM_THREAD_SINGLE
    BenchThreads(threads::ThreadsFlags),
}

fn main() -> ExitCode {
    task::end(match Task::parse() {
        Task::Counts(flags) => counts::run(flags),
        Task::BenchCrowded(flags) => crowded::run(flags),
        Task::BenchPeer(flags) => peer::run(flags),
        Task::BenchRaces(flags) => races::run(flags),
        Task::BenchSize(flags) => size::run(flags),
        Task::BenchThreads(flags) => threads::run(flags),
    })
}
