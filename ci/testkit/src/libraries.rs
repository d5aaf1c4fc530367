//! Which shared libraries this machine has: tests over a network need its library.

use std::process::Command;

use crate::harness::absent;

/// Returns true if the dynamic linker finds a library, such as `libucp.so.0`.
pub fn has_library(name: &str) -> bool {
    let ldconfig = |path| Command::new(path).arg("-p").output();
    let known = ldconfig("ldconfig").or_else(|_| ldconfig("/sbin/ldconfig"));
    known.is_ok_and(|known| String::from_utf8_lossy(&known.stdout).contains(name))
}

/// Ends the test as ignored where the library is absent.
pub fn needs_library(name: &str) {
    if !has_library(name) {
        absent(format!("{name} is not here"));
    }
}
