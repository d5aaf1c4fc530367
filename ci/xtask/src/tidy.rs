//! `cargo xtask tidy`: checks the structure of the repository.
//!
//! A rule is a function from the [`Tree`] to complaints. It reads nothing else, so its tests need
//! only a few lines of text. The tables of a rule, such as which crate may import which, are at the
//! top of its file.

mod bindings;
mod circles;
mod files;
mod layers;
mod links;
mod lookups;
mod manifests;
mod tree;

use anyhow::{Result, bail};
use task_support::workspace::Workspace;

use tree::{Tree, read};

/// A rule: returns its complaints, each as `file: sentence`.
type Rule = fn(&Tree) -> Vec<String>;

const RULES: &[Rule] = &[
    layers::check,
    circles::check,
    manifests::check,
    files::check,
    links::check,
    lookups::check,
    bindings::check,
];

/// Runs all rules, and prints their complaints.
pub fn run() -> Result<()> {
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
