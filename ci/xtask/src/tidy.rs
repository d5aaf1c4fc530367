//! `cargo xtask tidy`: checks the structure of the repository.
//!
//! A rule is a function from the [`Tree`] to complaints. It reads nothing else, so its tests need
//! only a few lines of text. The tables of a rule, such as which crate may import which, are at the
//! top of its file.

mod files;
mod imports;
mod layers;
mod links;
mod manifests;
mod tree;

use anyhow::{Result, bail};
use task_support::workspace::Workspace;

use tree::{Tree, read};

/// A rule: returns its complaints, each as `file: sentence`.
type Rule = fn(&Tree) -> Vec<String>;

/// The version, the commit and the lines of code, counted as [`code_lines`] counts them, of the
/// last release.
const LAST_RELEASE: (&str, &str, usize) = ("0.1.0", "11966166", 76_630);

const RULES: &[Rule] = &[
    layers::check,
    manifests::check,
    files::check,
    imports::check,
    links::check,
];

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
    let (version, commit, lines) = LAST_RELEASE;
    println!(
        "{} lines of Rust without comments, blank lines and tests; {lines} in {version} ({commit})",
        code_lines(&tree)
    );
    match complaints.len() {
        0 => Ok(()),
        1 => bail!("1 thing is not as it should be"),
        n => bail!("{n} things are not as they should be"),
    }
}

/// Returns the number of lines of code of all sources that are not generated. Blank lines and lines
/// of comments do not count, nor does an inline module of tests, which is the last item of its
/// file.
fn code_lines(tree: &Tree) -> usize {
    tree.files
        .iter()
        .filter(|file| file.source().is_some() && !file.is_generated())
        .flat_map(|file| {
            file.text
                .lines()
                .take_while(|line| !line.starts_with("#[cfg(test)]"))
        })
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with("//"))
        .count()
}
