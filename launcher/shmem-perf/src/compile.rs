//! `shmem-perf build`: builds this program for another OpenSHMEM library, by that library's own
//! compiler wrapper.
//!
//! The installation has the C sources, and the Rust half as a static library, in a directory for
//! data.

use std::path::{Path, PathBuf};

use clap::Parser;
use perf_parts::ARCHIVE;

use crate::options;
use crate::print::print;

/// The directory of the sources and the static library, relative to that of the program.
const PARTS: &str = "../share/rushmem/shmem-perf";

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
    let mut command = perf_parts::command(&flags.oshcc, &parts()?, &flags.output)?;
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
