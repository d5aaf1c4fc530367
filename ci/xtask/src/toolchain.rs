//! What builds, packs and runs the programs of an installation: the system's tools, or those for
//! another processor or an older C library.

use std::ffi::OsStr;
use std::process::Command;

/// The tools.
pub struct Toolchain {
    /// What compiles and links C: a command and its first arguments.
    pub compiler: String,
    /// What the names of binutils begin with.
    pub binutils: String,
    /// What runs a program: a command and its first arguments, or nothing.
    pub runner: String,
    /// The date that documents have, in seconds; that of today if there is none.
    pub epoch: Option<String>,
}

impl Toolchain {
    /// Those of this machine.
    pub fn of_system() -> Toolchain {
        let (compiler, binutils, runner) = ("cc".to_owned(), String::new(), String::new());
        Toolchain { compiler, binutils, runner, epoch: None }
    }

    /// A command of binutils.
    pub fn binutil(&self, name: &str) -> Command {
        Command::new(format!("{}{name}", self.binutils))
    }

    /// A command that compiles.
    pub fn compiling<'a>(&'a self, args: impl Iterator<Item = &'a OsStr>) -> Command {
        let mut words = self.compiler.split_whitespace().map(OsStr::new).chain(args);
        let mut command = Command::new(words.next().unwrap_or(OsStr::new("cc")));
        command.args(words);
        command
    }

    /// A command that runs a program.
    pub fn running(&self, program: &OsStr) -> Command {
        let mut words = self.runner.split_whitespace().map(OsStr::new).chain([program]);
        let mut command = Command::new(words.next().unwrap_or(program));
        command.args(words);
        command
    }
}
