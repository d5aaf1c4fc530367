//! `cargo xtask tidy`: the structure that the repository promises, checked.
//!
//! A rule is a function from the [`Tree`] to complaints; it reads nothing else, so that each is
//! tested on a few lines of text. The tables that rules compare with (which crate may import which,
//! the words that were replaced) are at the top of the rule's file.

mod budgets;
mod comments;
mod figures;
mod files;
mod imports;
mod layers;
mod links;
mod manifests;
mod names;
mod prose;
mod tree;

use anyhow::{Result, bail};
use task_support::workspace::Workspace;

use tree::{Tree, read};

/// A rule: returns its complaints, each as `file: sentence`.
type Rule = fn(&Tree) -> Vec<String>;

const RULES: &[Rule] = &[
    budgets::check,
    layers::check,
    manifests::check,
    files::check,
    imports::check,
    names::check,
    prose::check,
    comments::check,
    links::check,
    figures::check,
];

pub fn run() -> Result<()> {
    let workspace = Workspace::open()?;
    let mut files = Vec::new();
    read(&workspace.root, &workspace.root, &mut files)?;
    let tree = Tree { files, packages: workspace.packages };
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
