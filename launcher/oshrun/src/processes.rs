//! The processes that this one has started: one group per PE, and one per daemon's agent, seen until the last of it is
//! gone.
//!
//! The number of a group stays its own as long as a process is in it, so a group is signalled only until it is known to
//! be empty. oshrun adopts the orphans of its PEs: whenever a process of the job ends, oshrun hears of it, waits for it,
//! and looks whether that was the last of a group.
#![forbid(unsafe_code)]

use std::io;
use std::time::Duration;

use rushmem_bootstrap::Exit;
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions};
use tokio::time::{Instant, sleep};

use crate::guard::Guard;

/// Whose process it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Member {
    /// That of a PE.
    Pe(u32),
    /// That which leads to a daemon, by the daemon's number in this process.
    Daemon(usize),
}

#[derive(Debug)]
struct Process {
    member: Member,
    pid: Pid,
    exit: Option<Exit>,
    /// Whether its group is known to be empty.
    gone: bool,
}

impl Process {
    fn is_pe(&self) -> bool {
        matches!(self.member, Member::Pe(_))
    }
}

/// The processes, and the guard that knows their groups, too.
#[derive(Debug)]
pub struct Processes {
    list: Vec<Process>,
    /// Until nothing is left.
    guard: Option<Guard>,
    /// Whether nothing more will be started.
    is_ending: bool,
}

impl Processes {
    /// No process yet but the guard.
    ///
    /// # Errors
    /// When the guard cannot be started.
    pub fn new() -> io::Result<Processes> {
        // Where it is refused, init has the orphans as everywhere.
        let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
        Ok(Processes { list: Vec::new(), guard: Some(Guard::start()?), is_ending: false })
    }

    /// The guard, to whom a new process announces itself.
    ///
    /// # Panics
    /// When it was dismissed: after the end of a job nothing is started.
    pub fn guard(&self) -> &Guard {
        self.guard.as_ref().expect("the job has not ended")
    }

    /// Adds a process that was started.
    pub fn add(&mut self, member: Member, pid: Pid) {
        self.list.push(Process { member, pid, exit: None, gone: false });
    }

    /// Waits for whatever has ended and returns the members among them, the lowest PE first.
    pub fn reap(&mut self) -> Vec<(Member, Exit)> {
        let mut exits = Vec::new();
        while let Ok(Some((pid, status))) = rustix::process::wait(WaitOptions::NOHANG) {
            let alive = |process: &&mut Process| process.pid == pid && process.exit.is_none();
            if let Some(process) = self.list.iter_mut().find(alive) {
                let signal = || Exit::Signal(status.terminating_signal().unwrap_or_default());
                let exit = status.exit_status().map_or_else(signal, Exit::Status);
                process.exit = Some(exit);
                exits.push((process.member, exit));
            }
        }
        for process in
            self.list.iter_mut().filter(|process| process.exit.is_some() && !process.gone)
        {
            process.gone =
                rustix::process::test_kill_process_group(process.pid) == Err(Errno::SRCH);
            if process.gone {
                self.guard.iter().for_each(|guard| guard.forget(process.pid));
            }
        }
        if self.is_ending && self.all_gone() {
            self.guard.take().into_iter().for_each(Guard::dismiss);
        }
        exits.sort_unstable_by_key(|(member, _)| *member);
        exits
    }

    /// Whether nothing is left of any group.
    fn all_gone(&self) -> bool {
        self.list.iter().all(|process| process.gone)
    }

    /// Whether the process of every PE has exited.
    pub fn all_pes_exited(&self) -> bool {
        self.list.iter().all(|process| !process.is_pe() || process.exit.is_some())
    }

    /// The PEs that have not exited.
    pub fn alive(&self) -> Vec<u32> {
        let alive = |process: &Process| match process.member {
            Member::Pe(pe) if process.exit.is_none() => Some(pe),
            _ => None,
        };
        self.list.iter().filter_map(alive).collect()
    }

    /// Sends a signal to every PE's group.
    pub fn signal(&self, signal: Signal) {
        for process in self.list.iter().filter(|process| process.is_pe() && !process.gone) {
            // It may belong to another user, by sudo; there is nothing better to do then.
            let _ = rustix::process::kill_process_group(process.pid, signal);
        }
    }

    /// Kills the group of one member.
    pub fn kill(&self, member: Member) {
        let is_it = |process: &&Process| process.member == member && !process.gone;
        if let Some(process) = self.list.iter().find(is_it) {
            let _ = rustix::process::kill_process_group(process.pid, Signal::KILL);
        }
    }

    /// After the end of all PEs: kills whatever is left of their groups and waits until it is gone, but no longer than
    /// `patience`. Returns what has ended meanwhile. The guard goes with the last group, and stays for what does not go.
    pub async fn clear(&mut self, patience: Duration) -> Vec<(Member, Exit)> {
        let deadline = Instant::now() + patience;
        self.is_ending = true;
        self.signal(Signal::KILL);
        let mut exits = Vec::new();
        loop {
            exits.extend(self.reap());
            let are_gone = self.list.iter().all(|process| process.gone || !process.is_pe());
            if are_gone || Instant::now() > deadline {
                return exits;
            }
            sleep(Duration::from_millis(1)).await;
        }
    }

    /// Waits until all groups are gone, those of agents too, which end by themselves when their daemons have; what is
    /// left after `patience` is killed.
    pub async fn dismiss(&mut self, patience: Duration) {
        self.is_ending = true;
        for _ in 0..2 {
            let deadline = Instant::now() + patience;
            while !self.all_gone() && Instant::now() < deadline {
                sleep(Duration::from_millis(1)).await;
                self.reap();
            }
            self.list.iter().for_each(|process| self.kill(process.member));
        }
    }
}
