//! The command that builds shmem-perf of its two parts: C sources, and a static library in Rust.
//!
//! The installation builds shmem-perf for Rushmem by this command, `shmem-perf build` and the
//! comparisons of benches/driver for other libraries.
#![forbid(unsafe_code)]

use std::path::{Path, PathBuf};
use std::process::Command;

/// The file name of the static library.
pub const ARCHIVE: &str = "libshmem_perf.a";

/// Returns the command that builds the program from the C sources and the static library in
/// `parts`.
///
/// # Errors
/// One sentence if the parts cannot be listed.
pub fn command(oshcc: &Path, parts: &Path, output: &Path) -> Result<Command, String> {
    let files = std::fs::read_dir(parts)
        .map_err(|error| format!("{} cannot be read: {error}.", parts.display()))?;
    let mut sources: Vec<PathBuf> = Vec::new();
    for file in files.flatten() {
        let path = file.path();
        if path.extension().is_some_and(|extension| extension == "c") {
            sources.push(path);
        }
    }
    // The same command each time, whatever the order of the directory.
    sources.sort();

    let mut command = Command::new(oshcc);
    // No warnings (-w): some routines that are measured are deprecated in other libraries.
    command.args(["-O2", "-w", "-pthread"]);
    command.args(sources);
    // The archive is after the sources that need it, and before the libraries that it needs.
    command.arg(parts.join(ARCHIVE));
    command.arg("-o").arg(output);
    command.args(["-Wl,--gc-sections", "-ldl", "-lm"]);
    Ok(command)
}
