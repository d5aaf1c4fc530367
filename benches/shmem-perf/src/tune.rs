//! `shmem-perf tune`: Rushmem's `shmem-info`, which is installed beside this program, measures
//! algorithms of collectives, since no routine of OpenSHMEM selects them.

use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

/// Replaces this process; returns only if that fails.
///
/// # Errors
/// If `shmem-info` is missing.
pub fn run(args: &[String]) -> Result<u8, String> {
    let own = std::env::current_exe().unwrap_or_else(|_| PathBuf::from("shmem-perf"));
    let program = own.with_file_name("shmem-info");
    let error = Command::new(&program).arg("tune").args(args).exec();
    Err(format!("it needs {}, which is a program of Rushmem: {error}", program.display()))
}
