//! Ends processes of a job that left the process group of their PE, by setsid or by daemonizing.
//!
//! Scans all processes of this host in /proc. The caller selects those of the job. A process is
//! stopped when it is found, and killed after a scan that finds no new one: a stopped process
//! cannot fork, and cannot exit, which would change the parent of its children.

use std::collections::HashSet;
use std::fs;
use std::time::Duration;

use rushmem_explain::process::pid_namespace;
use rustix::process::{Pid, Signal, kill_process};

/// Maximum number of scans. After them the found processes are killed, even if the last scan found
/// new ones.
const MAX_SCANS: u32 = 50;

/// Maximum number of attempts to read the environment of a process that is in execve, with pauses
/// of a millisecond.
const MAX_ATTEMPTS: u32 = 100;

/// A process that runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Descendant {
    /// The process ID.
    pub pid: Pid,
    /// The parent, if it is visible.
    pub parent: Option<Pid>,
    /// The process group, if it is visible.
    pub group: Option<Pid>,
}

/// Kills the processes that `is_root` selects, and all their descendants. Returns true if there
/// were any. Repeated scans also find chains of processes that each live for less than one scan.
pub fn end(is_root: impl Fn(&Descendant) -> bool) -> bool {
    let mut stopped = HashSet::new();
    let mut found = HashSet::new();
    for _ in 0..MAX_SCANS {
        let n_stopped = stopped.len();

        let mut processes = Vec::new();
        let mut roots = HashSet::new();
        for process in running() {
            // A process that was stopped during execve may no longer be selected, but must be
            // killed.
            if stopped.contains(&process.pid) || is_root(&process) {
                stop(&mut stopped, process.pid);
                roots.insert(process.pid);
            }
            processes.push(process);
        }

        found = with_descendants(roots, &processes);
        for pid in &found {
            stop(&mut stopped, *pid);
        }

        if stopped.len() == n_stopped {
            break;
        }
    }

    for pid in &found {
        send(*pid, Signal::KILL);
    }
    !found.is_empty()
}

/// Stops a process and adds it to `stopped`, unless it is there.
fn stop(stopped: &mut HashSet<Pid>, pid: Pid) {
    if stopped.insert(pid) {
        send(pid, Signal::STOP);
    }
}

fn send(pid: Pid, signal: Signal) {
    // This fails if the process has ended, or belongs to another user, as one that sudo has
    // started.
    let _ = kill_process(pid, signal);
}

/// Returns the roots and all their descendants.
fn with_descendants(mut found: HashSet<Pid>, processes: &[Descendant]) -> HashSet<Pid> {
    loop {
        let n_found = found.len();
        for process in processes {
            if process.parent.is_some_and(|parent| found.contains(&parent)) {
                found.insert(process.pid);
            }
        }
        if found.len() == n_found {
            return found;
        }
    }
}

/// Returns the running children of a process.
pub fn children(parent: Pid) -> HashSet<Pid> {
    running()
        .filter(|process| process.parent == Some(parent))
        .map(|process| process.pid)
        .collect()
}

/// Returns true if `pid` is the only child of this process. Returns false if the kernel does not
/// list children (`CONFIG_PROC_CHILDREN`). The list is complete if this process reaps no child
/// meanwhile.
pub fn is_only_child(pid: Pid) -> bool {
    let Ok(threads) = fs::read_dir("/proc/self/task") else {
        return false;
    };
    // The whole list is read first, since the children of a thread that ends pass to another one.
    let threads: Vec<fs::DirEntry> = threads.flatten().collect();

    let mut children = String::new();
    for thread in threads {
        // This fails if a thread has ended meanwhile. Its children then belong to another thread,
        // whose list may have been read already.
        let Ok(of_thread) = fs::read_to_string(thread.path().join("children")) else {
            return false;
        };
        children += &of_thread;
    }
    children.trim_end() == pid.as_raw_nonzero().to_string()
}

/// Returns true if /proc shows the processes of this PID namespace. In some sandboxes, it shows
/// those of another namespace, in which the same numbers denote other processes.
pub fn are_shown() -> bool {
    pid_namespace().is_some()
}

/// Returns all running processes; none if /proc does not show them. Each one is read when the
/// iterator reaches it.
pub fn running() -> impl Iterator<Item = Descendant> {
    let entries = if are_shown() {
        fs::read_dir("/proc").ok()
    } else {
        None
    };
    entries.into_iter().flatten().flatten().filter_map(|entry| {
        let number = entry.file_name().to_str()?.parse().ok()?;
        inspect(Pid::from_raw(number)?)
    })
}

/// Reads the state of a process, if it runs.
fn inspect(pid: Pid) -> Option<Descendant> {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).ok()?;
    parse_stat(pid, &stat)
}

/// Parses /proc/PID/stat. Returns `None` for a process that has ended and for a kernel thread. The
/// name in parentheses may contain any characters.
fn parse_stat(pid: Pid, stat: &str) -> Option<Descendant> {
    let (_, fields) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = fields.split_ascii_whitespace().collect();
    // The index counts from the state, the third field of proc_pid_stat(5).
    let number = |index: usize| fields.get(index)?.parse::<i32>().ok();

    // A process without memory is a kernel thread or has ended, unless other threads still run.
    let has_memory = fields.get(20).is_some_and(|size| *size != "0");
    let has_threads = number(17).is_some_and(|n_threads| n_threads > 1);
    if !has_memory && !has_threads {
        return None;
    }

    Some(Descendant {
        pid,
        parent: number(1).and_then(Pid::from_raw),
        group: number(2).and_then(Pid::from_raw),
    })
}

/// Returns the initial environment of a process; empty if this user may not read it.
pub fn environment(pid: Pid) -> Vec<u8> {
    let read =
        |file| fs::read(format!("/proc/{}/{file}", pid.as_raw_nonzero())).unwrap_or_default();

    let mut variables = read("environ");
    for _ in 0..MAX_ATTEMPTS {
        // Both files are empty only during execve: every other process has a name in `cmdline`.
        if !variables.is_empty() || !read("cmdline").is_empty() || inspect(pid).is_none() {
            break;
        }
        std::thread::sleep(Duration::from_millis(1));
        variables = read("environ");
    }
    variables
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    fn pid(number: i32) -> Pid {
        Pid::from_raw(number).expect("a number above 0")
    }

    fn process([number, parent, group]: [i32; 3]) -> Descendant {
        Descendant {
            pid: pid(number),
            parent: Some(pid(parent)),
            group: Some(pid(group)),
        }
    }

    #[test]
    fn lines_of_proc_are_read() {
        let rest = "1 2 3 0 -1 4194560 0 0 0 0 0 0 0 0 20 0 1 0 100 4096 9 18446744073709551615";
        let parsed = |line: &str| parse_stat(pid(9), line);
        assert_eq!(
            parsed(&format!("9 (a) R 5) S {rest}")),
            Some(process([9, 1, 2]))
        );
        let ended = rest.replace(" 4096 ", " 0 ");
        assert_eq!(parsed(&format!("9 (a) Z {ended}")), None);
        let threads = ended.replace(" 20 0 1 0 ", " 20 0 3 0 ");
        assert_eq!(
            parsed(&format!("9 (a) Z {threads}")),
            Some(process([9, 1, 2]))
        );
        assert_eq!(parsed(""), None);
    }

    #[test]
    fn descendants_are_found_in_any_order() {
        let processes = [
            [2, 3, 2],
            [3, 9, 3],
            [4, 2, 4],
            [5, 1, 5],
            [6, 5, 5],
            [9, 1, 9],
        ]
        .map(process);
        let found = |roots: &[i32]| {
            with_descendants(roots.iter().map(|root| pid(*root)).collect(), &processes)
        };
        assert!(found(&[9]) == [2, 3, 4, 9].map(pid).into());
        assert!(found(&[6, 2]) == [2, 4, 6].map(pid).into());
        assert!(found(&[]).is_empty());
    }

    #[test]
    fn a_process_ends_with_what_it_has_started() {
        let script = "setsid sleep 600 & setsid sh -c 'sleep 600; true' & echo; wait";
        let mut command = Command::new("sh");
        command
            .args(["-c", script])
            .stdout(std::process::Stdio::piped());
        let mut shell = command.spawn().expect("sh");
        let mut stdout = shell.stdout.take().expect("piped");
        let shell_pid = pid(shell.id() as i32);
        while end(|process| process.pid == shell_pid) {}
        // The pipe ends when all writers have ended.
        std::io::Read::read_to_end(&mut stdout, &mut Vec::new()).expect("a pipe");
        shell.wait().expect("own child");
    }
}
