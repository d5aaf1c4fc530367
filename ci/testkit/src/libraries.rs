//! Finds out which shared libraries this machine has: a test over a network needs the network's
//! library.

use std::process::Command;

use crate::harness::absent;

/// Returns true if the dynamic linker can open a library, such as `libucp.so.0`.
///
/// Another process opens it, since libraries of networks leave handlers and threads behind. The
/// library is preloaded: if the linker cannot open it, it prints a message and runs the program
/// nevertheless.
pub fn has_library(name: &str) -> bool {
    let output = Command::new("true").env("LD_PRELOAD", name).output();
    output.is_ok_and(|output| output.status.success() && output.stderr.is_empty())
}

/// Ends the test as ignored if the library is absent.
pub fn needs_library(name: &str) {
    if !has_library(name) {
        absent(format!("{name} is not here"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_linker_is_asked() {
        assert!(has_library("libc.so.6"));
        assert!(!has_library("libnosuch.so.0"));
        let empty = tempfile::NamedTempFile::with_suffix(".so").expect("a file");
        assert!(!has_library(empty.path().to_str().expect("a plain path")));
    }
}
