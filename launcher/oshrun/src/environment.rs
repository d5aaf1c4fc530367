//! The environment that PEs on other hosts get from oshrun: its working directory and its variables, except those that
//! belong to one host or to one session.
//!
//! The variables override those that the login on the host sets.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

/// Variables that are not passed on; a star at the end stands for any rest of a name.
const STAY: &[&str] = &[
    // The host.
    "HOST",
    "HOSTNAME",
    "HOSTTYPE",
    "MACHTYPE",
    "OSTYPE",
    // The session.
    "_",
    "DBUS_SESSION_BUS_ADDRESS",
    "LOGNAME",
    "MAIL",
    "OLDPWD",
    "SHELL",
    "SHLVL",
    "SSH_*",
    "STY",
    "SUDO_*",
    "TMUX",
    "TMUX_PANE",
    "USER",
    "WINDOW",
    "XDG_RUNTIME_DIR",
    "XDG_SEAT",
    "XDG_SESSION_*",
    "XDG_VTNR",
    // The connection of another launcher, or of another job, to this process.
    "PMI_*",
    "PMIX_*",
    "OSHRUN_JOB",
    "OSHRUN_SET",
    "RUSHMEM_LIVENESS",
    "RUSHMEM_MEMORY",
    "RUSHMEM_SOCKET",
    "SHMEM_LOCAL_ID",
    // The task of Slurm: its node and its number.
    "SLURMD_NODENAME",
    "SLURM_GTIDS",
    "SLURM_LOCALID",
    "SLURM_NODEID",
    "SLURM_PROCID",
    "SLURM_TASK_PID",
    "SLURM_TOPOLOGY_*",
];

/// The variables of this process that go to other hosts.
pub fn carried() -> Vec<(OsString, OsString)> {
    std::env::vars_os().filter(|(name, _)| goes(name)).collect()
}

/// The working directory under the name that the user's shell has for it: its links may point elsewhere on another host.
///
/// # Errors
/// When it does not exist any more.
pub fn folder() -> io::Result<PathBuf> {
    let folder = std::env::current_dir()?;
    let called = std::env::var_os("PWD").map(PathBuf::from).filter(|called| called.is_absolute());
    let same = |called: &PathBuf| match (std::fs::metadata(called), std::fs::metadata(&folder)) {
        (Ok(one), Ok(other)) => (one.dev(), one.ino()) == (other.dev(), other.ino()),
        _ => false,
    };
    Ok(called.filter(same).unwrap_or(folder))
}

fn goes(name: &OsStr) -> bool {
    !STAY.iter().any(|entry| match entry.strip_suffix('*') {
        Some(start) => name.as_bytes().starts_with(start.as_bytes()),
        None => name == OsStr::new(entry),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_belongs_to_a_host_stays() {
        let goes = |name| goes(OsStr::new(name));
        assert!(
            ["PATH", "HOME", "DISPLAY", "SLURM_JOB_ID", "A", "SSH", "OMP_NUM_THREADS"].map(goes)
                == [true; 7]
        );
        assert!(
            ["SSH_CONNECTION", "HOSTNAME", "PMI_FD", "XDG_SESSION_ID", "_"].map(goes) == [false; 5]
        );
    }
}
