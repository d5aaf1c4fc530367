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
        // A run that has failed leaves its directory; usually there is none.
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(dir.join("bin")).expect("a directory");
        fs::create_dir_all(dir.join("home")).expect("a directory");
        // The pages install into this directory of the home directory.
        symlink(prefix(), dir.join("home/rushmem")).expect("a link");
        Page { name, text, dir }
    }

    /// Returns the directory in which commands are run.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Returns the fenced blocks of the page in a language, in their order.
    pub fn blocks(&self, language: &str) -> Vec<String> {
        blocks(&self.text, language)
    }

    /// Returns the fenced block of the page in a language that contains these words.
    ///
    /// # Panics
    /// If there is none, or more than one.
    #[track_caller]
    pub fn block(&self, language: &str, words: &str) -> String {
        block(&self.text, language, words)
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
        let mut bash = Command::new("timeout");
        bash.args([LIMIT, "bash", "-euo", "pipefail", "-c", commands]);
        bash.current_dir(&self.dir);

        // The stand-ins come first, since they replace programs.
        let stand_ins = self.dir.join("bin");
        let installed = prefix().join("bin");
        let path = std::env::var("PATH").unwrap_or_default();
        let path = format!("{}:{}:{path}", stand_ins.display(), installed.display());
        bash.env("PATH", path);

        // Cargo and rustup look in the home directory, which is another one for the commands.
        let home = PathBuf::from(std::env::var_os("HOME").unwrap_or_default());
        bash.env("HOME", self.dir.join("home"));
        bash.env("CARGO_HOME", home.join(".cargo"));
        bash.env("RUSTUP_HOME", home.join(".rustup"));

        bash.env("CARGO", env!("CARGO"));
        // The programs of a page are built beside the page's files, as a reader's are.
        bash.env_remove("CARGO_TARGET_DIR");
        // Compilers and jobs then take less memory: their threads share one arena.
        bash.env("MALLOC_ARENA_MAX", "1");

        let output = bash.output().expect("bash");
        let printed = [&output.stdout[..], &output.stderr].concat();
        assert!(
            output.status.success(),
            "docs/{}.md:\n{commands}\n{}: {}",
            self.name,
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

/// Returns the fenced block of a text in a language that contains these words.
///
/// # Panics
/// If there is none, or more than one.
#[track_caller]
pub fn block(text: &str, language: &str, words: &str) -> String {
    let mut found = blocks(text, language);
    found.retain(|block| block.contains(words));
    let [block] = &found[..] else {
        panic!("{} blocks contain {words}", found.len())
    };
    block.clone()
}

/// Returns the fenced blocks of a text in a language. A fence may name attributes after the
/// language, separated by commas.
pub fn blocks(text: &str, language: &str) -> Vec<String> {
    let mut found = Vec::new();
    // Split at the fences, a text is in turn what is outside of a block and what is in one.
    let mut parts = text.split("\n```");
    let _before_the_first = parts.next();
    while let Some(block) = parts.next() {
        let Some(_after_the_block) = parts.next() else {
            // The block has no end.
            break;
        };

        let (head, body) = block.split_once('\n').unwrap_or((block, ""));
        if head.split(',').next() == Some(language) {
            found.push(format!("{body}\n"));
        }
    }
    found
}
