//! The environment that PEs on other hosts get from oshrun: its working directory and its
//! variables, except those of the host or of the login session. They override those of the login on
//! the host.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

/// Variables that are not forwarded; a trailing `*` matches any suffix.
const NOT_FORWARDED: &[&str] = &[
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
    // The connection between this process and its own launcher.
    "PMI_*",
    "PMIX_*",
    "OSHRUN_JOB",
    "OSHRUN_SET",
    "RUSHMEM_LIVENESS",
    "RUSHMEM_MEMORY",
    "RUSHMEM_SOCKET",
    "SHMEM_LOCAL_ID",
    // The Slurm task.
    "SLURMD_NODENAME",
    "SLURM_GTIDS",
    "SLURM_LOCALID",
    "SLURM_NODEID",
    "SLURM_PROCID",
    "SLURM_TASK_PID",
    "SLURM_TOPOLOGY_*",
];

/// Returns the variables of this process that are forwarded to other hosts.
pub fn forwarded() -> Vec<(OsString, OsString)> {
    std::env::vars_os().filter(|(name, _)| is_forwarded(name)).collect()
}

/// Returns the working directory as the user's shell names it, since symbolic links may differ
/// between hosts.
pub fn dir() -> io::Result<PathBuf> {
    let dir = std::env::current_dir()?;
    let called = std::env::var_os("PWD").map(PathBuf::from).filter(|called| called.is_absolute());
    let same = |called: &PathBuf| match (std::fs::metadata(called), std::fs::metadata(&dir)) {
        (Ok(one), Ok(other)) => (one.dev(), one.ino()) == (other.dev(), other.ino()),
        _ => false,
    };
    Ok(called.filter(same).unwrap_or(dir))
}

fn is_forwarded(name: &OsStr) -> bool {
    !NOT_FORWARDED.iter().any(|entry| match entry.strip_suffix('*') {
        Some(start) => name.as_bytes().starts_with(start.as_bytes()),
        None => name == OsStr::new(entry),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_of_a_host_are_not_forwarded() {
        let is_forwarded = |name| is_forwarded(OsStr::new(name));
        assert!(
            ["PATH", "HOME", "DISPLAY", "SLURM_JOB_ID", "A", "SSH", "OMP_NUM_THREADS"]
                .map(is_forwarded)
                == [true; 7]
        );
        assert!(
            ["SSH_CONNECTION", "HOSTNAME", "PMI_FD", "XDG_SESSION_ID", "_"].map(is_forwarded)
                == [false; 5]
        );
    }
}
