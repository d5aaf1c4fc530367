//! `cargo xtask`: the tasks of this repository beyond compiling it, such as tests, installation and
//! releases.
//!
//! Each task has a file, except those of virtual machines (ci/verbs) and benchmarks
//! (benches/driver), which are crates of their own. A task calls programs (cargo, compilers,
//! oshrun) and reports; it does not depend on the library's code.
#![forbid(unsafe_code)]

mod bindings;
mod book;
mod codegen;
mod counts;
mod demo;
mod dist;
mod install;
mod libraries;
mod symbols;
mod test;
mod tidy;
mod toolchain;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

/// Run a task of this repository
#[derive(Parser)]
#[command(name = "cargo xtask")]
struct Xtask {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Build, install under target/demo, compile and run two examples
    Demo,
    /// Run the tests and checks that every change must pass
    Test(test::TestFlags),
    /// Test the networks over verbs, in virtual machines
    Verbs(verbs::VerbsFlags),
    /// Build the release and install it
    Install(install::InstallFlags),
    /// Make the files of a release: an archive, a Python wheel, the sources, checksums
    Dist(dist::DistFlags),
    /// Write the diagram of the crates and the page of settings
    Codegen(GenerateFlags),
    /// Make the documentation one site, under target/book
    Book,
    /// Write the bindings of C libraries from their headers
    Bindings(GenerateFlags),
    /// Compare the exports of an installed librushmem with the standard and with its promised ABI
    Symbols(symbols::SymbolsFlags),
    /// Check the structure of the repository
    Tidy,
    /// Count instructions of short routines, on a node and over a network
    Counts(counts::CountsFlags),
    /// Measure small operations where CPUs are crowded
    BenchCrowded(bench_driver::crowded::CrowdedFlags),
    /// Compare with another OpenSHMEM
    BenchPeer(bench_driver::peer::PeerFlags),
    /// Measure the time and the memory that the race detector takes
    BenchRaces(bench_driver::races::RacesFlags),
    /// Measure time and memory of jobs of many PEs
    BenchSize(bench_driver::size::SizeFlags),
    /// Compare collectives at SHMEM_THREAD_MULTIPLE and at SHMEM_THREAD_SINGLE
    BenchThreads(bench_driver::threads::ThreadsFlags),
}

/// Flags of a task that writes files.
#[derive(clap::Args)]
struct GenerateFlags {
    /// Write nothing, and fail if a file is not up to date
    #[arg(long)]
    check: bool,
}

fn run(task: Task) -> Result<()> {
    match task {
        Task::Demo => demo::run(),
        Task::Test(flags) => test::run(flags),
        Task::Verbs(flags) => verbs::run(flags, install::into),
        Task::Install(flags) => install::run(flags),
        Task::Dist(flags) => dist::run(flags),
        Task::Codegen(flags) => codegen::run(flags.check),
        Task::Bindings(flags) => bindings::run(flags.check),
        Task::Book => book::run_task(),
        Task::Symbols(flags) => symbols::run(flags),
        Task::Tidy => tidy::run(),
        Task::Counts(flags) => counts::run(flags),
        Task::BenchCrowded(flags) => bench_driver::crowded::run(flags, install::into),
        Task::BenchPeer(flags) => bench_driver::peer::run(flags, install::into),
        Task::BenchRaces(flags) => bench_driver::races::run(flags, install::into),
        Task::BenchSize(flags) => bench_driver::size::run(flags, install::into),
        Task::BenchThreads(flags) => bench_driver::threads::run(flags, install::into),
    }
}

fn main() -> ExitCode {
    match run(Xtask::parse().task) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}
