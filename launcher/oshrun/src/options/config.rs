//! Applies the files of settings of the site and the user (`rushmem_bootstrap::config`): what they
//! say is in the environment of oshrun, and so in that of its PEs on all hosts.
#![allow(unsafe_code)]

use std::ffi::OsStr;

use rushmem_bootstrap::config;

use crate::failure::complain;
use crate::spawn::program;

/// Reads the files, and names those and the lines that do not count. `main` calls it before it starts
/// a thread.
pub fn apply() {
    let lookup = |name: &str| std::env::var_os(name).map(|value| value.to_string_lossy().into());
    let own = program::own_file();
    let prefix = own.parent().and_then(std::path::Path::parent);
    let (variables, mistakes) = config::defaults(lookup, prefix);
    mistakes.iter().for_each(|mistake| complain(&format!("oshrun: warning: {mistake}")));
    for (name, value) in &variables {
        // SAFETY: `main` has started no thread that could read the environment meanwhile.
        unsafe { std::env::set_var(OsStr::new(name), value) };
    }
}
