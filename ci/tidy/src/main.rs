//! `cargo xtask tidy`: checks the structure of the repository.
//!
//! A rule is a function from the [`Tree`] to complaints. It reads nothing else, so its tests need
//! only a few lines of text. The tables of a rule, such as which crate may import which, are at the
//! top of its file.
#![forbid(unsafe_code)]

mod files;
mod layers;
mod links;
mod manifests;
mod tree;

use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::Parser;
use task_support::task;
use task_support::workspace::Workspace;

use tree::{Tree, read};

#[derive(Parser)]
#[command(bin_name = "cargo xtask")]
enum Task {
    /// Check the structure of the repository
    Tidy,
}

/// A rule: returns its complaints, each as `file: sentence`.
type Rule = fn(&Tree) -> Vec<String>;

const RULES: &[Rule] = &[layers::check, manifests::check, files::check, links::check];

fn main() -> ExitCode {
    let Task::Tidy = Task::parse();
    task::end(run())
}

fn run() -> Result<()> {
    let workspace = Workspace::open()?;
    let mut files = Vec::new();
    read(&workspace.root, &workspace.root, &mut files)?;
    let tree = Tree {
        files,
        packages: workspace.packages,
    };

    let complaints: Vec<String> = RULES.iter().flat_map(|rule| rule(&tree)).collect();
    for complaint in &complaints {
        println!("{complaint}");
    }
    match complaints.len() {
        0 => Ok(()),
        1 => bail!("1 thing is not as it should be"),
        n => bail!("{n} things are not as they should be"),
    }
}
