//! A mark on a process and on all processes that it starts, directly or not, and a search for the
//! processes with a mark.
//!
//! The mark is an environment variable. Processes inherit it, so it also finds those that have left
//! their process group or session.

use std::fmt;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use rustix::process::{Pid, Signal, kill_process};

/// The environment variable that is the mark.
const VARIABLE: &str = "TESTKIT_JOB";

/// A process as /proc shows it.
#[derive(Debug, Clone)]
pub struct Process {
    /// The process ID.
    pub pid: i32,
    /// The command line, with spaces between arguments.
    pub command: String,
}

impl fmt::Display for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.pid, self.command)
    }
}

/// The mark of one job's processes. If it is dropped while a test panics, it kills them.
#[derive(Debug, Clone)]
pub struct TestMark(String);

impl TestMark {
    /// Returns a mark that no other job has.
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        Self(format!("{}-{number}", std::process::id()))
    }

    /// Marks the process that `command` will start.
    pub(crate) fn put_on(&self, command: &mut Command) {
        command.env(VARIABLE, &self.0);
    }

    /// Returns all running processes with this mark, without those that have ended and for which no
    /// process has waited yet, since they have no environment.
    pub fn processes(&self) -> Vec<Process> {
        let mut marked = Vec::new();
        for entry in fs::read_dir("/proc").expect("this is Linux").flatten() {
            let file_name = entry.file_name();
            // Other entries of /proc are no processes.
            let Some(pid) = file_name.to_str().and_then(|name| name.parse().ok()) else {
                continue;
            };
            // A process that has ended meanwhile, or belongs to another user, is none of ours.
            let Some(environment) = environment(&entry.path()) else {
                continue;
            };

            if self.is_in(&environment) {
                let command = command_line(&entry.path());
                marked.push(Process { pid, command });
            }
        }
        marked
    }

    /// Returns true if an environment, whose variables end with a zero byte, has this mark.
    fn is_in(&self, environment: &[u8]) -> bool {
        let wanted = format!("{VARIABLE}={}", self.0);
        environment
            .split(|&byte| byte == 0)
            .any(|variable| variable == wanted.as_bytes())
    }

    /// Kills all processes with this mark. Returns those to which it has sent the signal.
    pub(crate) fn kill(&self) -> Vec<Process> {
        let running = self.processes();
        for process in &running {
            kill(process.pid);
        }
        running
    }
}

impl Drop for TestMark {
    fn drop(&mut self) {
        if thread::panicking() {
            self.kill();
        }
    }
}

/// The number of times that a running process must show an empty environment together with a
/// command line until it counts as having none. During an exec, the environment is empty at first;
/// the exec may end between the reads of the two files, but not this often in a row.
const MAX_EMPTY_READS: u32 = 5;

/// Returns the environment of a process, or `None` if it cannot be read. `process` is the directory
/// of the process in /proc.
fn environment(process: &Path) -> Option<Vec<u8>> {
    let mut empty_reads = 0;
    loop {
        let environment = fs::read(process.join("environ")).ok()?;
        if !environment.is_empty() {
            return Some(environment);
        }

        // A thread of the kernel, and a process for which nobody has waited yet, has no memory and
        // will never have an environment.
        let status = fs::read_to_string(process.join("status")).ok()?;
        if !status.contains("VmSize:") {
            return Some(environment);
        }

        // In the middle of an exec there is neither an environment nor a command line for a moment,
        // so another read may find them.
        let command_line = fs::read(process.join("cmdline")).ok()?;
        if !command_line.is_empty() {
            empty_reads += 1;
            if empty_reads == MAX_EMPTY_READS {
                return Some(environment);
            }
        }
        thread::yield_now();
    }
}

fn command_line(process: &Path) -> String {
    let bytes = fs::read(process.join("cmdline")).unwrap_or_default();
    let line = String::from_utf8_lossy(&bytes).replace('\0', " ");
    line.trim_end().to_owned()
}

/// Sends SIGKILL to one process. Does nothing if the process has ended.
pub fn kill(pid: i32) {
    send(pid, Signal::KILL);
}

pub(crate) fn send(pid: i32, signal: Signal) {
    if let Some(pid) = Pid::from_raw(pid) {
        // It fails only if the process has ended or belongs to another user; callers check for
        // running processes afterwards.
        let _ = kill_process(pid, signal);
    }
}
