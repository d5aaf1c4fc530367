//! The documents that are generated: the diagram of the crates and the page of settings, which are
//! committed, and the documentation as a site.
#![forbid(unsafe_code)]

mod book;
mod codegen;
mod reference;

use std::process::ExitCode;

use clap::Parser;
use task_support::task;

#[derive(Parser)]
#[command(bin_name = "cargo xtask")]
enum Task {
    /// Make the documentation one site, under target/book
    Book,
    /// Write the diagram of the crates and the page of settings
    Codegen {
        /// Write nothing, and fail if a file is not up to date
        #[arg(long)]
        check: bool,
    },
}

fn main() -> ExitCode {
    task::end(match Task::parse() {
        Task::Book => book::run(),
        Task::Codegen { check } => codegen::run(check),
    })
}
