//! `cargo xtask`: the tasks of this repository beyond compiling it, such as tests, installation and
//! releases.
//!
//! A task calls programs (cargo, compilers, oshrun) and reports; it does not depend on the
//! library's code. What a new user calls first is here, too: this program depends on little, so
//! that it is built in seconds. The tasks that measure are those of [another program](benches).
//!
//! A new task is a row and a file here, without a further dependency.
#![forbid(unsafe_code)]

mod benches;
mod bindings;
mod book;
mod check;
mod codegen;
mod demo;
mod dist;
mod install;
mod mutants;
mod runner;
mod symbols;
mod test;
mod tidy;
mod verbs;

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};
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
    Tidy,
    /// Write the diagram of the crates and the page of settings
    Codegen(codegen::CodegenFlags),
    /// Make the documentation one site, under target/book
    Book,
    /// Make the files of a release: an archive, a Python wheel, the sources, checksums
    Dist(dist::DistFlags),
    /// Test the networks over verbs, in virtual machines
    Verbs(verbs::VerbsFlags),
    /// Put faults into the code, which tests must find
    Mutants(mutants::MutantsFlags),
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

/// The arguments of a task of another program, which reads them.
#[derive(clap::Args)]
struct Arguments {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

fn run(task: Task) -> Result<()> {
    let (name, Arguments { arguments }) = match task {
        Task::Demo => return demo::run(),
        Task::Install(flags) => return install::run(flags),
        Task::Test(flags) => return test::run(flags),
        Task::Check(flags) => return check::run(flags),
        Task::Bindings(flags) => return bindings::run(flags),
        Task::Symbols(flags) => return symbols::run(flags),
        Task::Tidy => return tidy::run(),
        Task::Codegen(flags) => return codegen::run(&flags),
        Task::Book => return book::run(),
        Task::Dist(flags) => return dist::run(flags),
        Task::Verbs(flags) => return verbs::run(flags),
        Task::Mutants(flags) => return mutants::run(&flags),
        Task::Counts(arguments) => ("counts", arguments),
        Task::BenchCrowded(arguments) => ("bench-crowded", arguments),
        Task::BenchPeer(arguments) => ("bench-peer", arguments),
        Task::BenchRaces(arguments) => ("bench-races", arguments),
        Task::BenchSize(arguments) => ("bench-size", arguments),
        Task::BenchThreads(arguments) => ("bench-threads", arguments),
    };
    benches::become_task(name, &arguments)
}

fn main() -> ExitCode {
    task::end(run(Xtask::parse().task))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_arguments_of_another_program_are_passed_to_it() {
        Xtask::command().debug_assert();
        for words in [&["--help"][..], &["--prefix", "dir", "-x"]] {
            let line = ["xtask", "counts"].iter().chain(words);
            match Xtask::try_parse_from(line).unwrap().task {
                Task::Counts(Arguments { arguments }) => assert_eq!(arguments, words),
                _ => panic!("another task"),
            }
        }
    }
}
