//! Finds the installation under test.

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
