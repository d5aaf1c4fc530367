//! The guard: a process that kills the process groups of the job if oshrun is killed.
//!
//! The guard reads numbers of process groups from a pipe. Only oshrun holds the write end, and each
//! child between fork and exec. A child writes its number before it executes its program, so the
//! guard knows all running programs. oshrun writes the negated number of a group that has ended,
//! and 0 when the job has ended.
//!
//! End of file without a 0 means that oshrun was killed, or exited while processes of the job were
//! left. Then the guard kills the groups of PEs at once. It kills those of launch agents after a
//! delay, in which the daemons on other hosts end their PEs. It finds processes outside their
//! groups by the mark of the job.
//!
//! The guard ignores all signals that can be ignored, and has its own session, so that no terminal
//! signals it.
#![allow(unsafe_code)]

use std::collections::BTreeMap;
use std::io::{self, PipeWriter, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitOptions};

use crate::ends::mark::{self, JobMark};
use crate::ends::{descendants, leftovers};
use crate::spawn::program;

/// The program name that selects the role of a guard.
const NAME: &str = "oshrun-guard";

/// The bit that a launch agent sets in the number of its group; larger than all process IDs.
pub const AGENT_FLAG: i32 = 1 << 30;

/// The last number that oshrun writes, when the job has ended.
const DISMISSED: i32 = 0;

/// Time for launch agents to end by themselves: their daemons end when the connection is closed.
const AGENT_LIMIT: Duration = Duration::from_secs(3);

/// Maximum time of the search for processes outside their groups, if new ones keep appearing.
const SEARCH_LIMIT: Duration = Duration::from_secs(10);

/// Consecutive scans that must find nothing: one scan may miss a process that forks and ends.
const EMPTY_SCANS: u32 = 5;

/// The highest signal number on Linux.
const LAST_SIGNAL: i32 = 64;

/// The connection of oshrun to its guard.
#[derive(Debug)]
pub struct GuardProcess {
    pid: Pid,
    pipe: PipeWriter,
}

impl GuardProcess {
    /// Starts the guard for processes with this mark.
    pub fn start(mark: &JobMark) -> io::Result<GuardProcess> {
        let (read, write) = io::pipe()?;

        let mut command = Command::new(program::own_file());
        command
            .arg0(NAME)
            .env(mark::VARIABLE, mark.value())
            // The guard may outlive the job, and must not keep its file system busy.
            .current_dir("/")
            .stdin(read)
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        // SAFETY: `before_exec` only makes system calls, and neither allocates nor locks, as
        // required between fork and exec.
        unsafe { command.pre_exec(before_exec) };

        let child = command.spawn()?;
        Ok(GuardProcess {
            pid: pid_of(child.id()),
            pipe: write,
        })
    }

    /// Returns the process of the guard.
    pub fn pid(&self) -> Pid {
        self.pid
    }

    /// Returns the pipe to which children write the numbers of their groups, in native byte order.
    pub fn pipe(&self) -> &PipeWriter {
        &self.pipe
    }

    /// Removes a group that has ended, since its number may be reused.
    pub fn forget(&self, group: Pid) {
        let gone = -group.as_raw_nonzero().get();
        // This fails if the guard was killed.
        let _ = (&self.pipe).write_all(&gone.to_ne_bytes());
    }

    /// Ends the guard, and waits until it has exited. It kills nothing, so no process may be left.
    pub fn dismiss(self) {
        // Both calls fail only if the guard was killed before.
        let _ = (&self.pipe).write_all(&DISMISSED.to_ne_bytes());
        drop(self.pipe);
        let _ = rustix::process::waitpid(Some(self.pid), WaitOptions::empty());
    }
}

/// Prepares the guard between fork and exec, so this function may only make system calls.
fn before_exec() -> io::Result<()> {
    rustix::process::setsid()?;
    for signal in 1..=LAST_SIGNAL {
        // SAFETY: SIG_IGN runs no code; the kernel refuses signals that cannot be ignored.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
    Ok(())
}

/// Converts a process ID of the standard library to that of rustix.
pub fn pid_of(id: u32) -> Pid {
    let number = i32::try_from(id).ok();
    let pid = number.and_then(Pid::from_raw);
    pid.expect("the kernel's process numbers are above 0 and fit i32")
}

/// Returns true if this process was started as a guard.
pub fn is_guard() -> bool {
    std::env::args_os().eq([NAME])
}

/// A process group that the guard kills.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum GroupKind {
    Pe,
    LaunchAgent,
}

/// Runs the guard.
pub fn run() -> ExitCode {
    let mut groups = BTreeMap::new();
    let mut stdin = io::stdin().lock();
    let mut bytes = [0; 4];
    // An error counts as end of file.
    while stdin.read_exact(&mut bytes).is_ok() {
        match i32::from_ne_bytes(bytes) {
            DISMISSED => return ExitCode::SUCCESS,
            number => record(&mut groups, number),
        }
    }

    let pes = groups_of_kind(&groups, GroupKind::Pe);
    kill(&pes);
    end_marked(&pes);
    // These PEs have just ended, so no other process has their IDs yet: the kernel reuses an ID
    // only after it has assigned all others.
    for pe in &pes {
        leftovers::remove(*pe);
    }

    let agents = groups_of_kind(&groups, GroupKind::LaunchAgent);
    let since = Instant::now();
    while since.elapsed() < AGENT_LIMIT && agents.iter().any(|agent| has_processes(*agent)) {
        std::thread::sleep(Duration::from_millis(10));
    }
    kill(&agents);
    ExitCode::SUCCESS
}

fn groups_of_kind(groups: &BTreeMap<i32, GroupKind>, wanted: GroupKind) -> Vec<Pid> {
    let mut selected = Vec::new();
    for (&number, &kind) in groups {
        if kind == wanted {
            selected.push(Pid::from_raw(number).expect("a recorded number is above 1"));
        }
    }
    selected
}

fn has_processes(group: Pid) -> bool {
    rustix::process::test_kill_process_group(group).is_ok()
}

/// Kills process groups. One signal suffices, since a process cannot escape it by forking.
fn kill(groups: &[Pid]) {
    for group in groups {
        // This fails if the group has ended.
        let _ = rustix::process::kill_process_group(*group, Signal::KILL);
    }
}

/// Ends the processes of these groups and all that have the mark of the job, with their
/// descendants.
fn end_marked(groups: &[Pid]) {
    let Some(mark) = JobMark::inherited() else {
        return;
    };

    let own = rustix::process::getpid();
    let is_of_job = |process: &descendants::Descendant| {
        let is_in_group = process.group.is_some_and(|group| groups.contains(&group));
        // The guard itself has the mark.
        process.pid != own && (is_in_group || mark.is_in(&descendants::environment(process.pid)))
    };

    let since = Instant::now();
    let mut n_empty = 0;
    while n_empty < EMPTY_SCANS && since.elapsed() < SEARCH_LIMIT {
        if descendants::end(is_of_job) {
            n_empty = 0;
        } else {
            n_empty += 1;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Handles a number from the pipe: a positive one adds a process group, a negative one removes it.
fn record(groups: &mut BTreeMap<i32, GroupKind>, number: i32) {
    if number < 0 {
        groups.remove(&number.saturating_neg());
        return;
    }

    let kind = if number & AGENT_FLAG == 0 {
        GroupKind::Pe
    } else {
        GroupKind::LaunchAgent
    };
    let group = number & !AGENT_FLAG;
    // killpg takes 0 for the group of the guard itself, and kill takes -1, the negated group 1, for
    // all processes.
    if group > 1 {
        groups.insert(group, kind);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_added_and_removed() {
        let mut groups = BTreeMap::new();
        for number in [
            10,
            11,
            -10,
            12,
            1,
            0,
            -1,
            i32::MIN,
            -99,
            AGENT_FLAG,
            AGENT_FLAG + 13,
            AGENT_FLAG + 14,
            -14,
        ] {
            record(&mut groups, number);
        }
        let left = [
            (11, GroupKind::Pe),
            (12, GroupKind::Pe),
            (13, GroupKind::LaunchAgent),
        ];
        assert!(groups.into_iter().eq(left));
    }
}
