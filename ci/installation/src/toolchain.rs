//! The tools that build, strip and run the programs of an installation: those of this machine, or
//! those for another processor or an older C library.

use std::ffi::OsStr;
use std::process::Command;

/// The tools of an installation, and how they are used.
pub struct Toolchain {
    /// The compiler and linker of C: a command and its first arguments.
    pub compiler: String,
    /// The prefix of the names of binutils, such as `aarch64-linux-gnu-`; empty for those of this
    /// machine.
    pub binutils: String,
    /// The command that runs a program for the processor of the installation, with its first
    /// arguments; empty if this machine runs such programs itself.
    pub runner: String,
    /// True if debug information is installed, in separate files.
    pub keeps_debug_information: bool,
    /// The date of man pages, in seconds since 1970; `None` for today.
    pub epoch: Option<String>,
}

impl Toolchain {
    /// Returns the tools of this machine.
    pub fn of_system() -> Toolchain {
        let (compiler, binutils, runner) = ("cc".to_owned(), String::new(), String::new());
        Toolchain {
            compiler,
            binutils,
            runner,
            keeps_debug_information: true,
            epoch: None,
        }
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

/// Returns the command that consists of the words of `first`, which may be empty, and of `rest`.
fn of_words<'a>(first: &'a str, rest: impl Iterator<Item = &'a OsStr>) -> Command {
    let mut words = first.split_whitespace().map(OsStr::new).chain(rest);
    let mut command = Command::new(words.next().expect("a command has a word"));
    command.args(words);
    command
}
