//! Programs for another processor than this machine's, which an emulator of user programs runs
//! under the launcher of this machine.

use std::path::PathBuf;

use crate::prefix::prefix;

/// Returns the launcher: RUSHMEM_LAUNCHER where the prefix is for another processor.
pub fn launcher() -> PathBuf {
    let named = std::env::var_os("RUSHMEM_LAUNCHER").map(PathBuf::from);
    named.unwrap_or_else(|| prefix().join("bin/oshrun"))
}

/// Returns what stands before a program: RUSHMEM_EMULATOR, a command and its arguments.
pub fn words() -> Vec<String> {
    let command = std::env::var("RUSHMEM_EMULATOR").unwrap_or_default();
    command.split_whitespace().map(str::to_owned).collect()
}
