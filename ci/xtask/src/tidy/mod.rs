//! `cargo xtask tidy`: the structure that the repository promises, checked.
//!
//! A rule is a function from the [`Tree`] to complaints; it reads nothing else, so that each is tested
//! on a few lines of text. The tables that rules compare with (who may import whom, what lies at the top) stand at the
//! top of the rule's file.

mod files;
mod imports;
mod layers;
mod manifests;

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::workspace::{Package, Workspace};

/// Every text file of the repository, and its packages.
struct Tree {
    files: Vec<File>,
    packages: Vec<Package>,
}

struct File {
    /// Relative to the top of the repository.
    path: String,
    text: String,
}

impl File {
    fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// Whether a program wrote it: then its length and its style are not its authors' choice.
    fn is_generated(&self) -> bool {
        self.text.lines().next().is_some_and(|line| line.contains("@generated"))
    }
}

/// What one rule finds, each as `file: sentence`.
type Rule = fn(&Tree) -> Vec<String>;

const RULES: &[Rule] = &[layers::check, manifests::check, files::check, imports::check];

pub fn run(args: &[String]) -> Result<()> {
    if let Some(arg) = args.first() {
        bail!("tidy takes no arguments, not `{arg}`");
    }
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

/// Reads what lies under `folder`, without git's folder and whatever cargo builds.
fn read(root: &Path, folder: &Path, files: &mut Vec<File>) -> Result<()> {
    let entries =
        fs::read_dir(folder).with_context(|| format!("could not read {}", folder.display()))?;
    for entry in entries {
        let entry = entry?;
        let path = entry.path();
        if entry.file_type()?.is_dir() {
            if entry.file_name() != ".git" && !path.join("CACHEDIR.TAG").exists() {
                read(root, &path, files)?;
            }
        } else if let Ok(text) = fs::read_to_string(&path)
            && let Some(path) = path.strip_prefix(root)?.to_str()
            && path != ".git"
        {
            files.push(File { path: path.to_owned(), text });
        }
    }
    Ok(())
}

#[cfg(test)]
fn tree(files: &[(&str, &str)]) -> Tree {
    let files = files
        .iter()
        .map(|(path, text)| File { path: (*path).to_owned(), text: (*text).to_owned() });
    Tree { files: files.collect(), packages: Vec::new() }
}
