//! Removes the shared memory files that libfabric leaves in /dev/shm if a process is killed. They
//! are named `<pid>:<uid>:<number>`, and libfabric fails in a later process with the same ID.
//!
//! oshrun removes the files of a failed child before it reaps the child: until then no other
//! process can have the same ID. The guard is not the parent of PEs, so it removes their files
//! right after it has killed them.
#![allow(unsafe_code)]

use std::ffi::c_int;
use std::fs;
use std::io;
use std::mem::MaybeUninit;
use std::path::Path;

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, getuid, kill_process, waitpid};

/// The directory of POSIX shared memory.
const DIR: &str = "/dev/shm";

/// Reaps a child that has ended, if there is one. Removes its files first if it failed. A child
/// that has made its parent trace it (`PTRACE_TRACEME`), and stops, goes on untraced.
///
/// # Errors
/// If there are no children.
pub fn wait() -> rustix::io::Result<Option<(Pid, WaitStatus)>> {
    loop {
        match event()? {
            None => return Ok(None),
            Some((pid, ChildEvent::Ended { has_failed })) => {
                if has_failed {
                    remove(pid);
                }
                return waitpid(Some(pid), WaitOptions::NOHANG);
            }
            Some((pid, ChildEvent::Stopped { signal })) => release_traced(pid, signal),
        }
    }
}

/// What has happened to a child.
enum ChildEvent {
    /// It has ended but is not reaped.
    Ended {
        /// True unless it exited with status 0.
        has_failed: bool,
    },
    /// This process traces it, and it has stopped for a signal.
    Stopped { signal: c_int },
}

/// Stops tracing a child that has stopped for a signal, which it then takes.
fn release_traced(pid: Pid, signal: c_int) {
    // A traced process gets this signal when it executes a program.
    let delivered = if signal == libc::SIGTRAP { 0 } else { signal };
    let number = pid.as_raw_nonzero().get();
    // SAFETY: this request takes numbers, and changes no memory of this process.
    let code = unsafe { libc::ptrace(libc::PTRACE_DETACH, number, 0, delivered) };
    if code != 0 {
        // It would stay stopped for ever. It has ended before the next look, or soon after it.
        let _ = kill_process(pid, Signal::KILL);
    }
}

/// Returns what has happened to a child, without reaping it.
fn event() -> rustix::io::Result<Option<(Pid, ChildEvent)>> {
    let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
    let options = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
    // SAFETY: the pointer is valid for writes of a siginfo_t.
    let code = unsafe { libc::waitid(libc::P_ALL, 0, info.as_mut_ptr(), options) };
    if code != 0 {
        return Err(Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::CHILD));
    }

    // SAFETY: `info` is initialized by the call, or consists of zeros, which are a valid siginfo_t.
    let info = unsafe { info.assume_init() };
    // SAFETY: waitid has set the fields of SIGCHLD, or has left zeros if no child has ended.
    let pid = unsafe { info.si_pid() };
    // SAFETY: as for `si_pid`.
    let status = unsafe { info.si_status() };
    let event = match info.si_code {
        libc::CLD_TRAPPED | libc::CLD_STOPPED => ChildEvent::Stopped { signal: status },
        code => ChildEvent::Ended {
            has_failed: code != libc::CLD_EXITED || status != 0,
        },
    };
    Ok(Pid::from_raw(pid).map(|pid| (pid, event)))
}

/// Removes the files of a process.
pub fn remove(pid: Pid) {
    remove_from(Path::new(DIR), pid);
}

fn remove_from(dir: &Path, pid: Pid) {
    let prefix = format!("{}:{}:", pid.as_raw_nonzero(), getuid().as_raw());
    // A directory that cannot be read counts as an empty one.
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let name = entry.file_name();
        if let Some(number) = name.to_str().and_then(|name| name.strip_prefix(&prefix))
            && number.parse::<u32>().is_ok()
        {
            // This fails if another process has removed the file.
            let _ = fs::remove_file(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn files_of_others_stay() {
        let dir = std::env::temp_dir().join(format!("leftovers-{}", std::process::id()));
        fs::create_dir(&dir).expect("a new directory");
        let uid = getuid().as_raw();
        let own = [format!("123:{uid}:0"), format!("123:{uid}:17")];
        let others = [
            format!("1234:{uid}:0"),
            format!("123:{}:0", uid + 1),
            format!("123:{uid}:x"),
        ];
        for name in own.iter().chain(&others) {
            fs::write(dir.join(name), "").expect("a file");
        }

        remove_from(&dir, Pid::from_raw(123).expect("a number"));
        let left: BTreeSet<String> = fs::read_dir(&dir)
            .expect("the directory")
            .flatten()
            .filter_map(|entry| entry.file_name().into_string().ok())
            .collect();
        fs::remove_dir_all(&dir).expect("the directory");
        assert_eq!(left, BTreeSet::from(others));
    }
}
