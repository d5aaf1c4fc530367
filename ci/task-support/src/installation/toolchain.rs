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
        Toolchain {
            compiler: "cc".to_owned(),
            binutils: String::new(),
            runner: String::new(),
            keeps_debug_information: true,
            epoch: None,
        }
    }

    /// Returns the tools of this machine for an installation that tests use, without debug
    /// information: gdb and valgrind would read all of it in each of their jobs.
    pub fn for_tests() -> Toolchain {
        Toolchain {
            keeps_debug_information: false,
            ..Toolchain::of_system()
        }
    }

    /// Returns a command of binutils.
    pub fn binutil(&self, name: &str) -> Command {
        Command::new(format!("{}{name}", self.binutils))
    }

    /// Returns the command of the compiler, to which the caller adds its arguments.
    ///
    /// # Panics
    /// If the compiler has no name.
    pub fn compiler(&self) -> Command {
        let mut words = self.compiler.split_whitespace();
        let mut command = Command::new(words.next().expect("a compiler has a name"));
        command.args(words);
        command
    }

    /// Returns a command that runs a program.
    pub fn running(&self, program: &OsStr) -> Command {
        let mut words = self.runner.split_whitespace();
        let Some(runner) = words.next() else {
            return Command::new(program);
        };
        let mut command = Command::new(runner);
        command.args(words).arg(program);
        command
    }
}
