//! Runs the blocks of commands of the pages for users, without changes, in bash, in a directory
//! with the programs that the page is about. Things that no test machine has are replaced by
//! stand-ins, such as this machine for other hosts, or left out by the test, with the reason.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::prefix;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
/// The time limit of a block, in seconds.
const LIMIT: &str = "900";

/// A page of docs, and a directory in which its commands run.
pub struct Page {
    name: &'static str,
    text: String,
    dir: PathBuf,
}

impl Page {
    /// Reads the page of this name. The directory is made in `tmp`, and is removed by
    /// [`end`](Self::end).
    ///
    /// # Panics
    /// If there is no such page, or no directory can be made.
    pub fn open(name: &'static str, tmp: &str) -> Page {
        let text = fs::read_to_string(format!("{ROOT}/docs/{name}.md")).expect("a page");
        let dir = Path::new(tmp).join(format!("pages-{name}"));
        let _ = fs::remove_dir_all(&dir);
        for name in ["home", "bin"] {
            fs::create_dir_all(dir.join(name)).expect("a directory");
        }
        symlink(prefix(), dir.join("home/rushmem")).expect("a link");
        Page { name, text, dir }
    }

    /// Returns the directory in which commands are run.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Returns the fenced blocks of the page in a language.
    pub fn blocks(&self, language: &str) -> Vec<String> {
        blocks(&self.text, language)
    }

    /// Returns the fenced block of the page in a language that contains these words.
    ///
    /// # Panics
    /// If there is none, or more than one.
    #[track_caller]
    pub fn block(&self, language: &str, words: &str) -> String {
        let mut found = self.blocks(language);
        found.retain(|block| block.contains(words));
        let [block] = &found[..] else {
            panic!("{} blocks contain {words}", found.len())
        };
        block.clone()
    }

    /// Writes a file in the directory.
    ///
    /// # Panics
    /// If it cannot be written.
    pub fn write(&self, name: &str, text: &str) {
        fs::write(self.dir.join(name), text).expect("a file");
    }

    /// Writes a script that the commands of the page run instead of the program `command`.
    ///
    /// # Panics
    /// If it cannot be written.
    pub fn stand_in(&self, command: &str, script: &str) {
        let path = self.dir.join("bin").join(command);
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).expect("a file");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("a mode");
    }

    /// Runs commands in the directory, with the installed prefix on the `PATH`.
    ///
    /// # Panics
    /// If they fail.
    pub fn shell(&self, commands: &str) -> Output {
        let Page { name, dir, .. } = self;
        let path = std::env::var("PATH").unwrap_or_default();
        let home = std::env::var_os("HOME")
            .map(PathBuf::from)
            .unwrap_or_default();
        let mut bash = Command::new("timeout");
        bash.args([LIMIT, "bash", "-euo", "pipefail", "-c", commands])
            .current_dir(dir);
        let bin = prefix().join("bin");
        bash.env(
            "PATH",
            format!("{}:{}:{path}", dir.join("bin").display(), bin.display()),
        );
        bash.env("HOME", dir.join("home"))
            .env("CARGO", env!("CARGO"))
            .env("MALLOC_ARENA_MAX", "1")
            .env_remove("CARGO_TARGET_DIR");
        bash.env("CARGO_HOME", home.join(".cargo"))
            .env("RUSTUP_HOME", home.join(".rustup"));
        let output = bash.output().expect("bash");
        let printed = [&output.stdout[..], &output.stderr].concat();
        assert!(
            output.status.success(),
            "docs/{name}.md:\n{commands}\n{}: {}",
            output.status,
            String::from_utf8_lossy(&printed)
        );
        output
    }

    /// Removes the directory.
    ///
    /// # Panics
    /// If it cannot be removed.
    pub fn end(self) {
        fs::remove_dir_all(&self.dir).expect("the directory");
    }
}

/// Returns the fenced blocks of a text in a language.
pub fn blocks(text: &str, language: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut parts = text.split("\n```");
    parts.next();
    while let (Some(block), Some(_)) = (parts.next(), parts.next()) {
        let (head, body) = block.split_once('\n').unwrap_or((block, ""));
        if head.split(',').next() == Some(language) {
            found.push(format!("{body}\n"));
        }
    }
    found
}
