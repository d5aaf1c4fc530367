//! The installation under test. If it is for another processor than that of this machine, an
//! emulator of user programs runs its programs, under the launcher of this machine.

use std::path::PathBuf;

/// Returns the installed prefix with bin/oshcc and bin/oshrun, from RUSHMEM_PREFIX.
///
/// # Panics
/// If there is none, with the command that makes one.
pub fn prefix() -> PathBuf {
    let Some(prefix) = std::env::var_os("RUSHMEM_PREFIX").map(PathBuf::from) else {
        panic!(
            "RUSHMEM_PREFIX names no installed prefix: run `cargo xtask test`, or `cargo xtask install --prefix DIR` \
             and set RUSHMEM_PREFIX=DIR"
        );
    };
    for tool in ["oshcc", "oshrun"] {
        let path = prefix.join("bin").join(tool);
        assert!(
            path.exists(),
            "{} is missing: run `cargo xtask test`, which installs the prefix it tests",
            path.display()
        );
    }
    prefix
}

/// Returns the launcher: RUSHMEM_LAUNCHER, which is set if the prefix is for another processor, or
/// `oshrun` of the prefix.
pub(crate) fn launcher() -> PathBuf {
    let named = std::env::var_os("RUSHMEM_LAUNCHER").map(PathBuf::from);
    named.unwrap_or_else(|| prefix().join("bin/oshrun"))
}

/// Returns the words that precede a program in a command line: RUSHMEM_EMULATOR, a command and its
/// arguments, which is empty by default.
pub(crate) fn emulator() -> Vec<String> {
    let command = std::env::var("RUSHMEM_EMULATOR").unwrap_or_default();
    command.split_whitespace().map(str::to_owned).collect()
}
