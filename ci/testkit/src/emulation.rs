//! Programs for another processor than that of this machine: an emulator of user programs runs
//! them, under the launcher of this machine.

use std::path::PathBuf;

use crate::prefix::prefix;

/// Returns the launcher: RUSHMEM_LAUNCHER, which is set if the prefix is for another processor, or
/// `oshrun` of the prefix.
pub fn launcher() -> PathBuf {
    let named = std::env::var_os("RUSHMEM_LAUNCHER").map(PathBuf::from);
    named.unwrap_or_else(|| prefix().join("bin/oshrun"))
}

/// Returns the words that precede a program in a command line: RUSHMEM_EMULATOR, a command and its
/// arguments, which is empty by default.
pub fn words() -> Vec<String> {
    let command = std::env::var("RUSHMEM_EMULATOR").unwrap_or_default();
    command.split_whitespace().map(str::to_owned).collect()
}
