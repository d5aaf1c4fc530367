//! The process groups that this process has started, one per PE and one per launch agent, until their last process ends.
//!
//! The number of a group is not reused while a process is in it, so a group is signalled only until it is known to be
//! empty. oshrun adopts the orphans of its PEs: it is notified when a process of the job ends, waits for it, and checks
//! whether it was the last one of a group. Processes that have left their group are still descendants of oshrun.

use std::cell::Cell;
use std::collections::HashSet;
use std::io;
use std::time::Duration;

use rushmem_bootstrap::Exit;
use rustix::io::Errno;
use rustix::process::{Pid, Signal};
use tokio::time::{Instant, sleep};

use crate::descendants;
use crate::guard::Guard;
use crate::leftovers;
use crate::liveness::Liveness;
use crate::mark::{self, Mark};
use crate::spawn::Ties;

/// The role of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Member {
    /// The process of a PE.
    Pe(u32),
    /// The launch agent of a daemon, by the daemon's number in this process.
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

/// The processes, and the guard, which also knows their groups.
#[derive(Debug)]
pub struct Processes {
    list: Vec<Process>,
    /// Present until nothing is left.
    guard: Option<Guard>,
    liveness: Liveness,
    mark: Mark,
    /// Children that this process already had when it started, such as the background jobs of a shell that replaced itself
    /// with oshrun. They do not belong to the job.
    foreign: HashSet<Pid>,
    /// Whether nothing more will be started.
    is_ending: bool,
}

impl Processes {
    /// Starts the guard, without any other process.
    ///
    /// # Errors
    /// When the guard cannot be started.
    pub fn new() -> io::Result<Processes> {
        // If the kernel refuses this, init adopts the orphans as usual.
        let own = rustix::process::getpid();
        let _ = rustix::process::set_child_subreaper(Some(own));
        let foreign = if has_children() { descendants::children(own) } else { HashSet::new() };
        let (liveness, mark) = (Liveness::new()?, Mark::new());
        let guard = Some(Guard::start(&mark)?);
        Ok(Processes { list: Vec::new(), guard, liveness, mark, foreign, is_ending: false })
    }

    /// The guard, to which a new process announces itself.
    ///
    /// # Panics
    /// When the guard was dismissed: after the end of a job nothing is started.
    pub fn guard(&self) -> &Guard {
        self.guard.as_ref().expect("the job has not ended")
    }

    /// The mechanisms that end a new PE with this process.
    ///
    /// # Panics
    /// As [`Processes::guard`].
    pub fn ties(&self) -> Ties<'_> {
        Ties { guard: self.guard(), liveness: &self.liveness, mark: &self.mark }
    }

    /// Adds a process that was started.
    pub fn add(&mut self, member: Member, pid: Pid) {
        self.list.push(Process { member, pid, exit: None, gone: false });
    }

    /// Waits for whatever has ended and returns the members among them, the lowest PE first.
    pub fn reap(&mut self) -> Vec<(Member, Exit)> {
        let mut exits = Vec::new();
        while let Ok(Some((pid, status))) = leftovers::wait() {
            self.foreign.remove(&pid);
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
            // It may belong to another user, through sudo; then nothing can be done.
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
    /// `limit`. Returns what has ended meanwhile. The guard ends with the last group, and stays for groups that do not end.
    pub async fn clear(&mut self, limit: Duration) -> Vec<(Member, Exit)> {
        let deadline = Instant::now() + limit;
        self.is_ending = true;
        self.signal(Signal::KILL);
        let mut exits = Vec::new();
        loop {
            exits.extend(self.reap());
            let are_gone = self.list.iter().all(|process| process.gone || !process.is_pe());
            if are_gone || Instant::now() > deadline {
                break;
            }
            sleep(Duration::from_millis(1)).await;
        }
        if self.guard.is_none() {
            self.end_descendants(deadline).await;
        }
        exits
    }

    /// Kills processes that have left their group, and waits for them until the deadline.
    async fn end_descendants(&self, deadline: Instant) {
        let me = rustix::process::getpid();
        // Whether there are children that must stay: then it is impossible to know whether others are left.
        let stays = Cell::new(false);
        let is_left = |process: &descendants::Descendant| {
            let pid = process.pid;
            let is_known = self.foreign.contains(&pid)
                || self.guard.iter().map(Guard::pid).chain(self.running()).any(|own| own == pid);
            let is_child = process.parent == Some(me);
            let must_stay =
                is_child && (is_known || mark::is_of_agent(&descendants::environment(pid)));
            stays.set(stays.get() || must_stay);
            is_child && !must_stay
        };
        // The kernel knows whether this process has descendants: without children there are none, since it adopts orphans.
        while has_children() && Instant::now() < deadline {
            if !descendants::end(is_left) && stays.take() {
                return;
            }
            sleep(Duration::from_millis(1)).await;
        }
    }

    /// The processes of members that have not exited.
    fn running(&self) -> impl Iterator<Item = Pid> {
        self.list.iter().filter(|process| process.exit.is_none()).map(|process| process.pid)
    }

    /// Waits until all groups have ended, including those of launch agents, which end with their daemons. Kills what is left
    /// after `limit`, and all processes that have left their group.
    pub async fn dismiss(&mut self, limit: Duration) {
        self.is_ending = true;
        for _ in 0..2 {
            let deadline = Instant::now() + limit;
            while !self.all_gone() && Instant::now() < deadline {
                sleep(Duration::from_millis(1)).await;
                self.reap();
            }
            self.list.iter().for_each(|process| self.kill(process.member));
        }
        self.end_descendants(Instant::now() + limit).await;
    }
}

/// Waits for what has ended and returns whether anything runs.
fn has_children() -> bool {
    loop {
        match leftovers::wait() {
            Ok(Some(_)) | Err(Errno::INTR) => {}
            Ok(None) => return true,
            Err(_) => return false,
        }
    }
}
