//! The guard: a process that ends the job's process groups when oshrun is killed and can do nothing itself any more.
//!
//! The guard reads numbers of process groups from a pipe whose write end only oshrun holds, and for a moment every new
//! PE: a PE writes its number itself before it becomes the user's program, so no program ever runs unknown to the guard.
//! oshrun writes the negative number of a group that is gone, and 0 when it needs no guard any more. End of file without that
//! means that oshrun is gone; groups that are left then are killed: those of PEs at once, those of agents that lead to other hosts when they have had time to end
//! there what they started. Processes of PEs that have left their groups are found by the job's mark.
//!
//! It never looks at anything but these numbers and the mark, ignores every signal that can be ignored, and is a session of its own,
//! so that no terminal reaches it.
#![allow(unsafe_code)]

use std::collections::BTreeMap;
use std::io::{self, PipeWriter, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitOptions};

use crate::mark::{self, Mark};
use crate::{descendants, program};

/// The name by which a process knows that it is a guard.
const NAME: &str = "oshrun-guard";

/// Added to the number of an agent's group; no process has a number as large.
const LATE: i32 = 1 << 30;

/// oshrun's last number: the job has ended.
const DISMISSED: i32 = 0;

/// How long agents may take to end by themselves: their daemons end when nothing leads to them any more.
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
    /// When there can be no pipe or process, or /proc is missing.
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

    /// A group is gone, and its number may be somebody else's soon.
    pub fn forget(&self, group: Pid) {
        let gone = -group.as_raw_nonzero().get();
        // Where somebody has killed the guard, nobody needs to know.
        let _ = (&self.pipe).write_all(&gone.to_ne_bytes());
    }

    /// Lets the guard end, when no group is left, and waits for it.
    pub fn dismiss(self) {
        let _ = (&self.pipe).write_all(&DISMISSED.to_ne_bytes());
        drop(self.pipe);
        // Somebody may have killed it before, which is as well.
        let _ = rustix::process::waitpid(Some(self.pid), WaitOptions::empty());
    }
}

/// What a process of this number writes to the guard: it leads to another host.
pub fn late(pid: i32) -> i32 {
    pid | LATE
}

/// A child's number as the system calls want it.
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

/// The guard's life.
pub fn stand() -> ExitCode {
    let mut groups = BTreeMap::new();
    let mut stdin = io::stdin().lock();
    let mut bytes = [0; 4];
    // An error is an end, too.
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
    let late = numbers(late);
    let since = Instant::now();
    let is_left = |group: &Pid| rustix::process::test_kill_process_group(*group).is_ok();
    while late.iter().any(is_left) && since.elapsed() < AGENT_LIMIT {
        std::thread::sleep(Duration::from_millis(10));
    }
    kill(&late);
    ExitCode::SUCCESS
}

/// Once is enough: the kernel lets no process of a group slip through by forking meanwhile.
fn kill(groups: &[Pid]) {
    for group in groups {
        // It may have gone by itself.
        let _ = rustix::process::kill_process_group(*group, Signal::KILL);
    }
}

/// Ends the processes of the job that are in none of these groups any more, and what they have started.
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

/// Notes a group, and whether it is an agent's.
fn note(groups: &mut BTreeMap<i32, bool>, number: i32) {
    // 1 as a group would mean every process there is.
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
