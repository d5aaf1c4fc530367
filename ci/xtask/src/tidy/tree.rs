//! The input of the rules: the text files of the repository and its packages.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use task_support::workspace::Package;

/// All text files of the repository, and its packages.
pub struct Tree {
    /// The files, in any order.
    pub files: Vec<File>,
    pub packages: Vec<Package>,
}

/// A text file.
pub struct File {
    /// The path, relative to the top of the repository.
    pub path: String,
    pub text: String,
}

impl Tree {
    /// Returns the text of the file of this path.
    pub fn text(&self, path: &str) -> Option<&str> {
        let file = self.files.iter().find(|file| file.path == path)?;
        Some(&file.text)
    }
}

impl File {
    pub fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// Returns the text of a Rust file without comments and without its unit tests, which are at
    /// its end.
    pub fn code(&self) -> String {
        let before = self.text.split("\n#[cfg(test)]\nmod tests {").next();
        let mut code = String::new();
        for line in before.unwrap_or_default().lines() {
            code += line.split("//").next().unwrap_or_default();
            code.push('\n');
        }
        code
    }

    /// Returns true if a program has written the file, so that rules of length and style do not
    /// apply.
    pub fn is_generated(&self) -> bool {
        self.text
            .lines()
            .next()
            .is_some_and(|line| line.contains("@generated"))
    }
}

/// Adds all text files below `dir` to `files`, without git's directory and cargo's build
/// directories.
pub fn read(root: &Path, dir: &Path, files: &mut Vec<File>) -> Result<()> {
    let entries = fs::read_dir(dir).with_context(|| format!("could not read {}", dir.display()))?;
    for entry in entries {
        let entry = entry?;
        let path = entry.path();
        if entry.file_type()?.is_dir() {
            // Cargo puts this file into its build directories.
            if entry.file_name() != ".git" && !path.join("CACHEDIR.TAG").exists() {
                read(root, &path, files)?;
            }
            continue;
        }
        // A file that is not text cannot be read so. In a worktree, `.git` is a file.
        if let Ok(text) = fs::read_to_string(&path)
            && let Some(path) = path.strip_prefix(root)?.to_str()
            && path != ".git"
        {
            files.push(File {
                path: path.to_owned(),
                text,
            });
        }
    }
    Ok(())
}

#[cfg(test)]
pub fn tree(files: &[(&str, &str)]) -> Tree {
    let files = files.iter().map(|(path, text)| File {
        path: (*path).to_owned(),
        text: (*text).to_owned(),
    });
    Tree {
        files: files.collect(),
        packages: Vec::new(),
    }
}
