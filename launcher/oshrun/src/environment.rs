//! What of oshrun's surroundings goes to other hosts: its working directory, and its variables but those that belong to a
//! host or to a session there.
//!
//! A PE finds the variables over what its host's login has set.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

/// Names that stay, or beginnings of names where a star ends them.
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
    // Another launcher's way to this very process.
    "PMI_*",
    "PMIX_*",
    "OSHRUN_JOB",
    "OSHRUN_SET",
    "RUSHMEM_LIVENESS",
    "RUSHMEM_MEMORY",
    "RUSHMEM_SOCKET",
    "SHMEM_LOCAL_ID",
    // A task of Slurm: its node, its number.
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

/// The working directory, as the user's shell calls it: what lies behind its links may be elsewhere on another host.
///
/// # Errors
/// When it is gone.
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
