//! `cargo xtask`: the tasks of this repository beyond compiling it, such as tests, installation and
//! releases.
//!
//! A task calls programs (cargo, compilers, oshrun) and reports; it does not depend on the
//! library's code. What a new user calls first is here: this program depends on little, so that it
//! is built in seconds. Other tasks are [programs of their own](programs).
#![forbid(unsafe_code)]

mod bindings;
mod check;
mod demo;
mod install;
mod programs;
mod runner;
mod symbols;
mod test;

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};
use programs::become_task;
use task_support::task;

/// Run a task of this repository
#[derive(Parser)]
#[command(bin_name = "cargo xtask", disable_help_subcommand = true)]
struct Xtask {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Build the library and oshrun, and compile and run two examples
    Demo,
    /// Build the release and install it
    Install(install::InstallFlags),
    /// Run the tests that every change must pass
    Test(test::TestFlags),
    /// Check format, lints, structure and generated files, which every change must pass, too
    Check(runner::StepFlags),
    /// Write the bindings of C libraries from their headers
    Bindings(bindings::BindingsFlags),
    /// Compare the exports of an installed librushmem with the standard and with its promised ABI
    Symbols(symbols::SymbolsFlags),
    /// Check the structure of the repository
    #[command(disable_help_flag = true)]
    Tidy(Arguments),
    /// Write the diagram of the crates and the page of settings
    #[command(disable_help_flag = true)]
    Codegen(Arguments),
    /// Make the documentation one site, under target/book
    #[command(disable_help_flag = true)]
    Book(Arguments),
    /// Make the files of a release: an archive, a Python wheel, the sources, checksums
    #[command(disable_help_flag = true)]
    Dist(Arguments),
    /// Test the networks over verbs, in virtual machines
    #[command(disable_help_flag = true)]
    Verbs(Arguments),
    /// Put faults into the engine, which its simulator must find
    #[command(disable_help_flag = true)]
    Mutants(Arguments),
    /// Count instructions of short routines, on a node and over a network
    #[command(disable_help_flag = true)]
    Counts(Arguments),
    /// Measure small operations where CPUs are crowded
    #[command(disable_help_flag = true)]
    BenchCrowded(Arguments),
    /// Compare with another OpenSHMEM
    #[command(disable_help_flag = true)]
    BenchPeer(Arguments),
    /// Measure the time and the memory that the race detector takes
    #[command(disable_help_flag = true)]
    BenchRaces(Arguments),
    /// Measure time and memory of jobs of many PEs
    #[command(disable_help_flag = true)]
    BenchSize(Arguments),
    /// Compare collectives at SHMEM_THREAD_MULTIPLE and at SHMEM_THREAD_SINGLE
    #[command(disable_help_flag = true)]
    BenchThreads(Arguments),
}

/// The arguments of a task that is a program of its own, which reads them.
#[derive(clap::Args)]
struct Arguments {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

fn run(task: Task) -> Result<()> {
    let (program, Arguments { arguments }) = match task {
        Task::Demo => return demo::run(),
        Task::Install(flags) => return install::run(flags),
        Task::Test(flags) => return test::run(flags),
        Task::Check(flags) => return check::run(flags),
        Task::Bindings(flags) => return bindings::run(flags),
        Task::Symbols(flags) => return symbols::run(flags),
        Task::Tidy(arguments) => (programs::TIDY, arguments),
        Task::Codegen(arguments) => (programs::CODEGEN, arguments),
        Task::Book(arguments) => (programs::BOOK, arguments),
        Task::Dist(arguments) => (programs::DIST, arguments),
        Task::Verbs(arguments) => (programs::VERBS, arguments),
        Task::Mutants(arguments) => (programs::MUTANTS, arguments),
        Task::Counts(arguments) => (programs::COUNTS, arguments),
        Task::BenchCrowded(arguments) => (programs::BENCH_CROWDED, arguments),
        Task::BenchPeer(arguments) => (programs::BENCH_PEER, arguments),
        Task::BenchRaces(arguments) => (programs::BENCH_RACES, arguments),
        Task::BenchSize(arguments) => (programs::BENCH_SIZE, arguments),
        Task::BenchThreads(arguments) => (programs::BENCH_THREADS, arguments),
    };
    become_task(&program, &arguments)
}

fn main() -> ExitCode {
    task::end(run(Xtask::parse().task))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_arguments_of_a_program_are_passed_to_it() {
        Xtask::command().debug_assert();
        for words in [&["--help"][..], &["--only", "wheel", "-x"]] {
            let line = ["xtask", "dist"].iter().chain(words);
            match Xtask::try_parse_from(line).unwrap().task {
                Task::Dist(Arguments { arguments }) => assert_eq!(arguments, words),
                _ => panic!("another task"),
            }
        }
    }
}
