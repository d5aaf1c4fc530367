//! Ends processes of a job that have left the process group of their PE: by setsid, or as daemons do, by a parent that
//! exits.
//!
//! It scans all processes of this host in /proc and knows nothing of the job: the caller says which of them belong to it.
//! A process is stopped as soon as it is found, and killed only after a scan that finds no other one, since a stopped
//! process neither starts others nor leaves its children to another parent.

use std::collections::HashSet;
use std::fs;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

/// Most scans of all processes; then whatever was found is killed, even if the last scan found new ones.
const SCANS: u32 = 50;

/// Most attempts to read a process that is executing another program at that moment.
const ATTEMPTS: u32 = 100;

/// A process that has not ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Descendant {
    /// Its number.
    pub pid: Pid,
    /// Its parent's number, if it is visible.
    pub parent: Option<Pid>,
    /// The number of its process group, if it is visible.
    pub group: Option<Pid>,
}

/// Kills the processes that `is_root` selects and all their descendants. Returns whether there were any. A process
/// that lives for less time than one scan takes is found by one of the scans, as are its successors.
pub fn end(is_root: impl Fn(&Descendant) -> bool) -> bool {
    let mut stopped = HashSet::new();
    let mut found = HashSet::new();
    for _ in 0..SCANS {
        let n_stopped = stopped.len();
        let mut processes = Vec::new();
        let mut roots = HashSet::new();
        for process in running() {
            // A process that was stopped is killed later, even if it was executing another program when the signal arrived.
            if stopped.contains(&process.pid) || is_root(&process) {
                stop(&mut stopped, process.pid);
                roots.insert(process.pid);
            }
            processes.push(process);
        }
        found = with_descendants(roots, &processes);
        found.iter().for_each(|pid| stop(&mut stopped, *pid));
        if stopped.len() == n_stopped {
            break;
        }
    }
    found.iter().for_each(|pid| send(*pid, Signal::KILL));
    !found.is_empty()
}

/// Stops a process that is not stopped yet.
fn stop(stopped: &mut HashSet<Pid>, pid: Pid) {
    if stopped.insert(pid) {
        send(pid, Signal::STOP);
    }
}

fn send(pid: Pid, signal: Signal) {
    // It may have ended, or belong to another user, through sudo; then nothing can be done.
    let _ = kill_process(pid, signal);
}

/// The roots, their children, the children of those, and so on.
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

/// The children of a process that have not ended.
pub fn children(parent: Pid) -> HashSet<Pid> {
    running().filter(|process| process.parent == Some(parent)).map(|process| process.pid).collect()
}

/// All processes that have not ended, each as it is when the iterator comes to it.
fn running() -> impl Iterator<Item = Descendant> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| look(Pid::from_raw(entry.file_name().to_str()?.parse().ok()?)?))
}

/// A process as it is now, if it has not ended.
fn look(pid: Pid) -> Option<Descendant> {
    parsed(pid, &fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).ok()?)
}

/// A process from its line in /proc, if it has not ended and is not a kernel thread. The name in parentheses may contain
/// any characters.
fn parsed(pid: Pid, stat: &str) -> Option<Descendant> {
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_ascii_whitespace().collect();
    let number = |index: usize| fields.get(index)?.parse::<i32>().ok();
    // Without memory it is a kernel thread or has ended, unless only its first thread has ended.
    let has_memory = fields.get(20).is_some_and(|size| *size != "0");
    let has_threads = number(17).is_some_and(|n_threads| n_threads > 1);
    let of = |index| number(index).and_then(Pid::from_raw);
    (has_memory || has_threads).then_some(Descendant { pid, parent: of(1), group: of(2) })
}

/// The variables with which a process was started; none if this user may not read them.
pub fn environment(pid: Pid) -> Vec<u8> {
    let read =
        |file| fs::read(format!("/proc/{}/{file}", pid.as_raw_nonzero())).unwrap_or_default();
    let mut variables = read("environ");
    for _ in 0..ATTEMPTS {
        // Every program has a name.
        if !variables.is_empty() || !read("cmdline").is_empty() || look(pid).is_none() {
            break;
        }
        std::thread::sleep(Duration::from_millis(1));
        variables = read("environ");
    }
    variables
}

#[cfg(test)]
mod tests;
