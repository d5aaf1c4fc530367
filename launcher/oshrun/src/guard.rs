//! The guard: a process that ends the process groups of the job if oshrun is killed and cannot do so itself.
//!
//! The guard reads numbers of process groups from a pipe. Only oshrun, and for a moment every new PE, holds the write end:
//! a PE writes its number before it executes the user's program, so the guard knows every program that runs. oshrun writes
//! the negative number of a group that has ended, and 0 when it no longer needs a guard. End of file without a 0 means that
//! oshrun is gone. Then the guard kills the remaining groups: those of PEs at once, those of launch agents after a time in
//! which they can end what they started on other hosts. It finds processes that have left their groups by the mark of the job.
//!
//! It knows only these numbers and the mark, ignores every signal that can be ignored, and has its own session, so that
//! no terminal can reach it.
#![allow(unsafe_code)]

use std::collections::BTreeMap;
use std::io::{self, PipeWriter, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitOptions};

use crate::mark::{self, Mark};
use crate::{descendants, leftovers, program};

/// The name by which a process knows that it is a guard.
const NAME: &str = "oshrun-guard";

/// Added to the number of a launch agent's group; no process has so large a number.
const LATE: i32 = 1 << 30;

/// The last number that oshrun writes: the job has ended.
const DISMISSED: i32 = 0;

/// How long launch agents may take to end by themselves: their daemons end when their connection does.
const AGENT_LIMIT: Duration = Duration::from_secs(3);

/// How long the guard searches for processes that have left their groups, if new ones keep appearing.
const SEARCH: Duration = Duration::from_secs(10);

/// Scans that find nothing before nothing is left: one scan may miss a process that starts another one and ends.
const EMPTY_SCANS: u32 = 5;

/// Largest number of a signal on Linux.
const LAST_SIGNAL: i32 = 64;

/// oshrun's side.
#[derive(Debug)]
pub struct Guard {
    pid: Pid,
    pipe: PipeWriter,
}

impl Guard {
    /// Starts the guard of the processes with this mark.
    ///
    /// # Errors
    /// When a pipe or a process cannot be created, or /proc is missing.
    pub fn start(mark: &Mark) -> io::Result<Guard> {
        let (read, write) = io::pipe()?;
        let mut command = Command::new(program::own());
        command.arg0(NAME).env(mark::VARIABLE, mark.value()).current_dir("/");
        command.stdin(read).stdout(Stdio::null()).stderr(Stdio::null());
        let before_exec = || {
            rustix::process::setsid()?;
            for signal in 1..=LAST_SIGNAL {
                // SAFETY: SIG_IGN runs no code; numbers that cannot be ignored are refused by the kernel.
                unsafe { libc::signal(signal, libc::SIG_IGN) };
            }
            Ok(())
        };
        // SAFETY: the closure makes system calls alone, without memory or locks, as a child between fork and exec must.
        unsafe { command.pre_exec(before_exec) };
        let child = command.spawn()?;
        Ok(Guard { pid: pid_of(child.id()), pipe: write })
    }

    /// Its process.
    pub fn pid(&self) -> Pid {
        self.pid
    }

    /// Where each PE writes its process group's number, in native bytes.
    pub fn pipe(&self) -> &PipeWriter {
        &self.pipe
    }

    /// A group has ended, and its number may be reused.
    pub fn forget(&self, group: Pid) {
        let gone = -group.as_raw_nonzero().get();
        // If the guard was killed, it does not need to know.
        let _ = (&self.pipe).write_all(&gone.to_ne_bytes());
    }

    /// Lets the guard end, when no group is left, and waits for it.
    pub fn dismiss(self) {
        let _ = (&self.pipe).write_all(&DISMISSED.to_ne_bytes());
        drop(self.pipe);
        // It does not matter if it was killed before.
        let _ = rustix::process::waitpid(Some(self.pid), WaitOptions::empty());
    }
}

/// The number by which a launch agent announces its group.
pub fn late(pid: i32) -> i32 {
    pid | LATE
}

/// A child's number in the type of the system calls.
pub fn pid_of(id: u32) -> Pid {
    i32::try_from(id)
        .ok()
        .and_then(Pid::from_raw)
        .expect("the kernel's process numbers are above 0 and fit i32")
}

/// Whether this process was started as a guard.
pub fn is_guard() -> bool {
    std::env::args_os().eq([NAME])
}

/// The role of the guard.
pub fn stand() -> ExitCode {
    let mut groups = BTreeMap::new();
    let mut stdin = io::stdin().lock();
    let mut bytes = [0; 4];
    // An error counts as the end.
    while stdin.read_exact(&mut bytes).is_ok() {
        match i32::from_ne_bytes(bytes) {
            DISMISSED => return ExitCode::SUCCESS,
            number => note(&mut groups, number),
        }
    }
    let (late, early): (Vec<_>, Vec<_>) = groups.into_iter().partition(|(_, is_late)| *is_late);
    let numbers = |groups: Vec<(i32, bool)>| -> Vec<Pid> {
        groups.into_iter().filter_map(|(group, _)| Pid::from_raw(group)).collect()
    };
    let early = numbers(early);
    kill(&early);
    end_marked(&early);
    // Whoever adopted them has waited for them, or they keep their numbers.
    early.iter().for_each(|pe| leftovers::remove(*pe));
    let late = numbers(late);
    let since = Instant::now();
    let is_left = |group: &Pid| rustix::process::test_kill_process_group(*group).is_ok();
    while late.iter().any(is_left) && since.elapsed() < AGENT_LIMIT {
        std::thread::sleep(Duration::from_millis(10));
    }
    kill(&late);
    ExitCode::SUCCESS
}

/// One signal is enough: no process of the group can escape it by forking at the same time.
fn kill(groups: &[Pid]) {
    for group in groups {
        // It may have ended by itself.
        let _ = rustix::process::kill_process_group(*group, Signal::KILL);
    }
}

/// Ends the processes of the job that have left these groups, and the processes that they have started.
fn end_marked(groups: &[Pid]) {
    let Some(mark) = Mark::given() else { return };
    let own = rustix::process::getpid();
    let is_of_job = |process: &descendants::Descendant| {
        process.pid != own
            && (process.group.is_some_and(|group| groups.contains(&group))
                || mark.is_in(&descendants::environment(process.pid)))
    };
    let since = Instant::now();
    let mut in_vain = 0;
    while in_vain < EMPTY_SCANS && since.elapsed() < SEARCH {
        in_vain = if descendants::end(is_of_job) { 0 } else { in_vain + 1 };
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Records a group, and whether it is that of a launch agent.
fn note(groups: &mut BTreeMap<i32, bool>, number: i32) {
    // As a group, 1 would mean all processes.
    if number > 1 {
        groups.insert(number & !LATE, number & LATE != 0);
    } else {
        groups.remove(&number.saturating_neg());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_come_and_go() {
        let mut groups = BTreeMap::new();
        for number in [10, 11, -10, 12, 1, 0, -1, i32::MIN, -99, LATE + 13, LATE + 14, -14] {
            note(&mut groups, number);
        }
        assert!(groups.into_iter().eq([(11, false), (12, false), (13, true)]));
    }
}
