//! The processes of one job, found by a mark in their environment: whatever started them, whatever they became.

use std::fmt;
use std::fs;
use std::path::Path;

use rustix::process::{Pid, Signal, kill_process};

/// The variable that holds the mark of a job. Programs inherit it, so a process that escaped its group shows it too.
pub(crate) const MARK: &str = "RUSHMEM_TEST_JOB";

/// A process as /proc shows it.
#[derive(Debug, Clone)]
pub struct Process {
    /// Its number.
    pub pid: i32,
    /// Its command line.
    pub command: String,
}

impl fmt::Display for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.pid, self.command)
    }
}

/// All running processes with this mark. Dead ones that nobody has waited for have no environment and do not count.
pub(crate) fn marked(mark: &str) -> Vec<Process> {
    let wanted = format!("{MARK}={mark}");
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    entries
        .flatten()
        .filter_map(|entry| {
            let pid: i32 = entry.file_name().to_str()?.parse().ok()?;
            let environment = environment(&entry.path())?;
            let is_marked = environment.split(|byte| *byte == 0).any(|e| e == wanted.as_bytes());
            is_marked.then(|| Process { pid, command: command_line(&entry.path()) })
        })
        .collect()
}

/// The environment of a process that runs. In the middle of an exec it has none for a moment.
fn environment(process: &Path) -> Option<Vec<u8>> {
    loop {
        let environment = fs::read(process.join("environ")).ok()?;
        let status = fs::read_to_string(process.join("status")).ok()?;
        let has_memory = status.contains("VmSize:");
        if !environment.is_empty() || !has_memory || !is_starting(process) {
            return Some(environment);
        }
        std::thread::yield_now();
    }
}

/// Whether its program is not there yet: a running process has a command line.
fn is_starting(process: &Path) -> bool {
    fs::read(process.join("cmdline")).is_ok_and(|line| line.is_empty())
}

fn command_line(process: &Path) -> String {
    let bytes = fs::read(process.join("cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&bytes).replace('\0', " ").trim_end().to_owned()
}

/// Sends SIGKILL to one process; one that is gone already is no error.
pub fn kill(pid: i32) {
    send(pid, Signal::KILL);
}

pub(crate) fn send(pid: i32, signal: Signal) {
    if let Some(pid) = Pid::from_raw(pid) {
        // The only errors are that it is gone or belongs to someone else; the caller looks again either way.
        let _ = kill_process(pid, signal);
    }
}
