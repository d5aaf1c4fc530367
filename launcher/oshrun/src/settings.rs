//! The settings of the job: those of `-x`, and those in the files of the site and of the user.
//! oshrun puts them into its own environment, which its PEs on all hosts get.
//!
//! oshrun itself reads some of them: the names of the files, and the limit of a silent host.
#![allow(unsafe_code)]

use std::ffi::{OsStr, OsString};
use std::path::Path;

use rushmem_bootstrap::config;

use crate::spawn::program;
use rushmem_system::stderr::print_line;

/// Puts the settings among the variables of `-x`, and those in files, into the environment of this
/// process. A variable of the environment has precedence over the files, and one of `-x` over both,
/// whichever of its names is used. Prints a warning for each file or line that is ignored. Must be
/// called before a thread is started.
pub fn apply(exported: &[(OsString, OsString)]) {
    for (name, value) in exported {
        let Some(setting) = name.to_str().filter(|name| config::is_name(name)) else {
            continue;
        };

        // The environment may have the setting by a deprecated name, which would stay beside it.
        for other in config::names_of(setting) {
            // SAFETY: `main` has started no thread that could read the environment meanwhile.
            unsafe { std::env::remove_var(other) };
        }
        set(name, value);
    }

    // This program is PREFIX/bin/oshrun.
    let own = program::own_file();
    let prefix = own.parent().and_then(Path::parent);
    let defaults = config::defaults(lookup, prefix);

    for mistake in &defaults.mistakes {
        print_line(format_args!("oshrun: warning: {mistake}"));
    }
    for (name, value) in &defaults.variables {
        set(OsStr::new(name), OsStr::new(value));
    }
}

/// Returns the end of a message: the file and the line of each setting that it names and that a
/// file has set.
pub fn places_in(message: &str) -> String {
    config::places_in(message, lookup)
}

fn set(name: &OsStr, value: &OsStr) {
    // SAFETY: `main` has started no thread that could read the environment meanwhile.
    unsafe { std::env::set_var(name, value) };
}

fn lookup(name: &str) -> Option<String> {
    std::env::var_os(name).map(|value| value.to_string_lossy().into_owned())
}
