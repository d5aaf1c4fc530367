//! What a process that did not end by itself leaves in memory that has names: libfabric's shared memory is in files named
//! `<process>:<user>:<number>`, and a later process with the same number is refused because of them.
//!
//! A file is removed only while the number still belongs to the process that has ended, or is free, so that no other
//! process has it. This file must never know which processes there are.
#![allow(unsafe_code)]

use std::fs;
use std::io;
use std::mem::MaybeUninit;
use std::path::Path;

use rustix::io::Errno;
use rustix::process::{Pid, WaitOptions, WaitStatus, getuid, waitpid};

const FOLDER: &str = "/dev/shm";

/// Waits for a child that has ended, if there is one, after removing what it has left if it failed.
///
/// # Errors
/// When there are no children.
pub fn wait() -> rustix::io::Result<Option<(Pid, WaitStatus)>> {
    let Some((pid, is_clean)) = ended()? else { return Ok(None) };
    if !is_clean {
        remove(pid);
    }
    waitpid(Some(pid), WaitOptions::NOHANG)
}

/// A child that has ended, which keeps its number until it is waited for, and whether it exited with status 0.
fn ended() -> rustix::io::Result<Option<(Pid, bool)>> {
    let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
    let options = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
    // SAFETY: room for what the call tells.
    let code = unsafe { libc::waitid(libc::P_ALL, 0, info.as_mut_ptr(), options) };
    if code != 0 {
        return Err(Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::CHILD));
    }
    // SAFETY: a structure of numbers, written by the call or zero.
    let info = unsafe { info.assume_init() };
    // SAFETY: the call told of a child, or left zeros.
    let pid = unsafe { info.si_pid() };
    // SAFETY: as above.
    let status = unsafe { info.si_status() };
    Ok(Pid::from_raw(pid).map(|pid| (pid, info.si_code == libc::CLD_EXITED && status == 0)))
}

/// Removes the files of a process of this user.
pub fn remove(pid: Pid) {
    remove_from(Path::new(FOLDER), pid);
}

fn remove_from(folder: &Path, pid: Pid) {
    let prefix = format!("{}:{}:", pid.as_raw_nonzero(), getuid().as_raw());
    // Without the folder, nothing is in it.
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let number = name.to_str().and_then(|name| name.strip_prefix(&prefix));
        if number.is_some_and(|number| number.parse::<u32>().is_ok()) {
            // Somebody else may have removed it.
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
        let folder = std::env::temp_dir().join(format!("leftovers-{}", std::process::id()));
        fs::create_dir(&folder).expect("a new folder");
        let uid = getuid().as_raw();
        let own = [format!("123:{uid}:0"), format!("123:{uid}:17")];
        let others =
            [format!("1234:{uid}:0"), format!("123:{}:0", uid + 1), format!("123:{uid}:x")];
        for name in own.iter().chain(&others) {
            fs::write(folder.join(name), "").expect("a file");
        }
        remove_from(&folder, Pid::from_raw(123).expect("a number"));
        let left = fs::read_dir(&folder).expect("the folder").flatten();
        let left: BTreeSet<_> =
            left.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        fs::remove_dir_all(&folder).expect("the folder");
        assert_eq!(left, BTreeSet::from(others));
    }
}
