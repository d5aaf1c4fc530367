//! The tools that build, pack and run the programs of an installation: the system's, or those for
//! another processor or an older C library.

use std::ffi::OsStr;
use std::process::Command;

/// The tools.
pub struct Toolchain {
    /// The compiler and linker of C: a command and its first arguments.
    pub compiler: String,
    /// The prefix of the names of binutils.
    pub binutils: String,
    /// The command that runs a program, with its first arguments, or nothing.
    pub runner: String,
    /// True if debug information is installed, in files of its own.
    pub keeps_debug_information: bool,
    /// The date that documents have, in seconds; that of today if there is none.
    pub epoch: Option<String>,
}

impl Toolchain {
    /// Returns those of this machine.
    pub fn of_system() -> Toolchain {
        let (compiler, binutils, runner) = ("cc".to_owned(), String::new(), String::new());
        Toolchain { compiler, binutils, runner, keeps_debug_information: true, epoch: None }
    }

    /// Returns a command of binutils.
    pub fn binutil(&self, name: &str) -> Command {
        Command::new(format!("{}{name}", self.binutils))
    }

    /// Returns a command that compiles.
    pub fn compiling<'a>(&'a self, args: impl Iterator<Item = &'a OsStr>) -> Command {
        of_words(&self.compiler, args)
    }

    /// Returns a command that runs a program.
    pub fn running(&self, program: &OsStr) -> Command {
        of_words(&self.runner, std::iter::once(program))
    }
}

/// Returns the command whose words are those of `first`, which may have none, and then `rest`.
fn of_words<'a>(first: &'a str, rest: impl Iterator<Item = &'a OsStr>) -> Command {
    let mut words = first.split_whitespace().map(OsStr::new).chain(rest);
    let mut command = Command::new(words.next().expect("a command has a word"));
    command.args(words);
    command
}
