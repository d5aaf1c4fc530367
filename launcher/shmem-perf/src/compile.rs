//! `shmem-perf build`: builds this program for another OpenSHMEM library, by that library's own
//! compiler wrapper.
//!
//! The installation has the C sources, and the Rust half as a static library, in a directory for
//! data.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::Parser;

use crate::options;
use crate::print::print;

/// The directory of the sources and the static library, relative to that of the program.
const PARTS: &str = "../share/rushmem/shmem-perf";
/// The file name of the static library.
const ARCHIVE: &str = "libshmem_perf.a";
/// The file beside the sources with the arguments of the compiler, by which the installation builds
/// this program for Rushmem, too. There are no warnings (`-w`), since some routines that are
/// measured are deprecated in other libraries. The static library is after the sources that need
/// it, and before the libraries that it needs.
const ARGUMENTS: &str = "arguments";

/// Build this program for another OpenSHMEM library.
#[derive(Debug, Parser)]
#[command(name = "shmem-perf build")]
struct BuildFlags {
    /// The compiler wrapper of the library
    #[arg(long, value_name = "OSHCC", default_value = "oshcc")]
    oshcc: PathBuf,

    /// The file to build
    #[arg(short, long, value_name = "FILE", default_value = "shmem-perf")]
    output: PathBuf,

    /// Print the command instead of running it
    #[arg(long)]
    show: bool,
}

/// Runs the subcommand with the arguments after `build`, and returns its exit status.
pub fn run(args: &[String]) -> Result<u8, String> {
    let Some(flags) = options::subcommand::<BuildFlags>("shmem-perf build", args)? else {
        return Ok(0);
    };
    let mut command = command(&flags.oshcc, &parts()?, &flags.output)?;
    if flags.show {
        let mut words = vec![command.get_program().to_string_lossy()];
        words.extend(command.get_args().map(|word| word.to_string_lossy()));
        print(&format!("{}\n", words.join(" ")))?;
        return Ok(0);
    }

    match command.status() {
        Ok(status) if status.success() => Ok(0),
        Ok(_) => Err(format!("{} did not build it.", flags.oshcc.display())),
        Err(error) => Err(format!(
            "{} cannot be started: {error}.",
            flags.oshcc.display()
        )),
    }
}

/// Returns the command that builds the program from the sources and the static library in `parts`.
///
/// # Errors
/// One sentence if the arguments cannot be read.
pub fn command(oshcc: &Path, parts: &Path, output: &Path) -> Result<Command, String> {
    let file = parts.join(ARGUMENTS);
    let arguments = fs::read_to_string(&file)
        .map_err(|error| format!("{} cannot be read: {error}.", file.display()))?;

    let mut command = Command::new(oshcc);
    for argument in arguments.split_whitespace() {
        if argument.ends_with(".c") || argument == ARCHIVE {
            command.arg(parts.join(argument));
        } else {
            command.arg(argument);
        }
    }
    command.arg("-o").arg(output);
    Ok(command)
}

fn parts() -> Result<PathBuf, String> {
    let program = std::env::current_exe()
        .map_err(|error| format!("this program cannot be found: {error}."))?;
    parts_dir(program.parent().unwrap_or(Path::new("/")))
}

/// Returns the directory of the parts, of the installation whose programs are in `programs`.
///
/// # Errors
/// One sentence if the static library is not there.
pub fn parts_dir(programs: &Path) -> Result<PathBuf, String> {
    let dir = programs.join(PARTS);
    if !dir.join(ARCHIVE).exists() {
        return Err(format!(
            "{} has no {ARCHIVE}: only the shmem-perf of an installed Rushmem can build others.",
            dir.display()
        ));
    }
    Ok(dir.canonicalize().unwrap_or(dir))
}
