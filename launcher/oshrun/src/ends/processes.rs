//! The process groups of this process: one for each PE and one for each launch agent.
//!
//! The kernel may reuse the number of a group that has no processes, so a group is signaled only
//! until it is known to be empty. oshrun is a subreaper: it adopts the orphans of its PEs, reaps
//! them, and then checks whether their group is empty. Processes that left their group remain
//! descendants of oshrun.

use std::cell::Cell;
use std::collections::HashSet;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::time::Duration;

use rushmem_bootstrap::Exit;
use rustix::io::Errno;
use rustix::process::{Pid, Signal};
use tokio::time::{Instant, sleep};

use crate::ends::guard::GuardProcess;
use crate::ends::mark::{self, JobMark};
use crate::ends::{EndMechanisms, LivenessPipe, descendants, leftovers};

/// A child that oshrun or a daemon has started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Child {
    /// The process of a PE.
    Pe(u32),
    /// The launch agent of a daemon, by the number of the daemon.
    Daemon(usize),
}

#[derive(Debug)]
struct ProcessEntry {
    child: Child,
    pid: Pid,
    exit: Option<Exit>,
    /// True if its group is known to be empty.
    is_gone: bool,
}

impl ProcessEntry {
    fn is_pe(&self) -> bool {
        matches!(self.child, Child::Pe(_))
    }
}

/// The processes that this process has started, and its guard.
#[derive(Debug)]
pub struct Processes {
    list: Vec<ProcessEntry>,
    /// Present until no process of the job is left.
    guard: Option<GuardProcess>,
    liveness: LivenessPipe,
    mark: JobMark,
    /// Children that existed before the start of oshrun, such as background jobs of a shell that
    /// executed oshrun by `exec`. They do not belong to the job.
    foreign: HashSet<Pid>,
}

impl Processes {
    /// Makes this process a subreaper, and starts the guard.
    pub fn new() -> io::Result<Processes> {
        // If this fails, init adopts the orphans.
        let own = rustix::process::getpid();
        let _ = rustix::process::set_child_subreaper(Some(own));
        let foreign = if has_children() {
            descendants::children(own)
        } else {
            HashSet::new()
        };
        let (liveness, mark) = (LivenessPipe::new()?, JobMark::new());
        let guard = Some(GuardProcess::start(&mark)?);
        Ok(Processes {
            list: Vec::new(),
            guard,
            liveness,
            mark,
            foreign,
        })
    }

    /// Returns the guard, with which a new process registers.
    ///
    /// # Panics
    /// If the guard was dismissed; nothing is started after the end of a job.
    pub fn guard(&self) -> &GuardProcess {
        self.guard.as_ref().expect("the job has not ended")
    }

    /// Returns the mark of the processes.
    pub fn mark(&self) -> &JobMark {
        &self.mark
    }

    /// Returns the mechanisms that end a new PE when this process ends.
    ///
    /// # Panics
    /// See [`Processes::guard`].
    pub fn end_mechanisms(&self) -> EndMechanisms<'_> {
        EndMechanisms {
            guard: self.guard(),
            liveness: &self.liveness,
            mark: &self.mark,
        }
    }

    /// Adds a started process.
    pub fn add(&mut self, child: Child, pid: Pid) {
        self.list.push(ProcessEntry {
            child,
            pid,
            exit: None,
            is_gone: false,
        });
    }

    /// Reaps all processes that have ended. Returns the children among them, the lowest PE first.
    pub fn reap(&mut self) -> Vec<(Child, Exit)> {
        let mut exits = Vec::new();
        while let Ok(Some((pid, status))) = leftovers::wait() {
            self.foreign.remove(&pid);
            let alive = |process: &&mut ProcessEntry| process.pid == pid && process.exit.is_none();
            if let Some(process) = self.list.iter_mut().find(alive) {
                let signal = || Exit::Signal(status.terminating_signal().unwrap_or_default());
                let exit = status.exit_status().map_or_else(signal, Exit::Status);
                process.exit = Some(exit);
                exits.push((process.child, exit));
            }
        }
        for process in self
            .list
            .iter_mut()
            .filter(|process| process.exit.is_some() && !process.is_gone)
        {
            process.is_gone =
                rustix::process::test_kill_process_group(process.pid) == Err(Errno::SRCH);
            if process.is_gone {
                self.guard
                    .iter()
                    .for_each(|guard| guard.forget(process.pid));
            }
        }
        exits.sort_unstable_by_key(|(child, _)| *child);
        exits
    }

    /// Returns true if all groups are empty.
    fn all_gone(&self) -> bool {
        self.list.iter().all(|process| process.is_gone)
    }

    /// Returns the PEs that have not exited, with their processes.
    pub fn alive(&self) -> impl Iterator<Item = (u32, Pid)> {
        self.list.iter().filter_map(|process| match process.child {
            Child::Pe(pe) if process.exit.is_none() => Some((pe, process.pid)),
            _ => None,
        })
    }

    /// Sends a signal to every PE's group.
    pub fn signal(&self, signal: Signal) {
        for process in self
            .list
            .iter()
            .filter(|process| process.is_pe() && !process.is_gone)
        {
            // This fails if the process belongs to another user, through sudo.
            let _ = rustix::process::kill_process_group(process.pid, signal);
        }
    }

    /// Sends a signal to those processes of the PEs' groups that handle, block or await it.
    pub fn signal_takers(&self, signal: Signal) {
        let groups: HashSet<Pid> = self
            .list
            .iter()
            .filter(|process| process.is_pe() && !process.is_gone)
            .map(|process| process.pid)
            .collect();
        for process in descendants::running() {
            let is_in_group = process.group.is_some_and(|group| groups.contains(&group));
            if is_in_group && takes(process.pid, signal) {
                let _ = rustix::process::kill_process(process.pid, signal);
            }
        }
    }

    /// Kills the group of a child.
    pub fn kill(&self, child: Child) {
        let is_it = |process: &&ProcessEntry| process.child == child && !process.is_gone;
        if let Some(process) = self.list.iter().find(is_it) {
            let _ = rustix::process::kill_process_group(process.pid, Signal::KILL);
        }
    }

    /// Kills all processes in the PEs' groups, and waits until they have ended or `limit` has
    /// passed. If all groups are then empty, also those of launch agents, kills the processes that
    /// left their group. Returns the children that ended meanwhile.
    pub async fn kill_all(&mut self, limit: Duration) -> Vec<(Child, Exit)> {
        let deadline = Instant::now() + limit;
        self.signal(Signal::KILL);
        let mut exits = Vec::new();
        loop {
            exits.extend(self.reap());
            let are_gone = self
                .list
                .iter()
                .all(|process| process.is_gone || !process.is_pe());
            if are_gone || Instant::now() > deadline {
                break;
            }
            sleep(Duration::from_millis(1)).await;
        }
        if self.all_gone() {
            self.end_descendants(deadline).await;
        }
        exits
    }

    /// Kills processes that left their group, and waits for them until the deadline. Dismisses the
    /// guard when none is left. Otherwise the guard stays, and ends them when this process exits.
    async fn end_descendants(&mut self, deadline: Instant) {
        if self.kill_descendants(deadline).await {
            self.guard
                .take()
                .into_iter()
                .for_each(GuardProcess::dismiss);
        }
    }

    /// Kills processes that left their group. Returns true once /proc shows none, which is at once
    /// if it shows no process of this namespace. Returns false at the deadline.
    async fn kill_descendants(&self, deadline: Instant) -> bool {
        let me = rustix::process::getpid();
        // If some children must stay, the existence of children does not show that others are left.
        let some_stay = Cell::new(false);
        let is_left = |process: &descendants::Descendant| {
            let pid = process.pid;
            let is_known = self.foreign.contains(&pid)
                || self
                    .guard
                    .iter()
                    .map(GuardProcess::pid)
                    .chain(self.running())
                    .any(|own| own == pid);
            let is_child = process.parent == Some(me);
            let must_stay =
                is_child && (is_known || mark::is_of_agent(&descendants::environment(pid)));
            some_stay.set(some_stay.get() || must_stay);
            is_child && !must_stay
        };
        // A subreaper without children has no descendants.
        while descendants::are_shown() && has_children() {
            // After most jobs, the guard is the only child.
            let mut guard = self.guard.iter().map(GuardProcess::pid);
            if guard.any(descendants::is_only_child) {
                break;
            }
            if Instant::now() >= deadline {
                return false;
            }
            if !descendants::end(is_left) && some_stay.take() {
                break;
            }
            sleep(Duration::from_millis(1)).await;
        }
        true
    }

    /// Returns the children that have not exited.
    fn running(&self) -> impl Iterator<Item = Pid> {
        self.list
            .iter()
            .filter(|process| process.exit.is_none())
            .map(|process| process.pid)
    }

    /// Waits until all groups are empty, including those of launch agents, which end with their
    /// daemons. After `limit` kills the remaining processes, and waits for `limit` again. Then
    /// kills processes that left their group.
    pub async fn dismiss(&mut self, limit: Duration) {
        for _ in 0..2 {
            let deadline = Instant::now() + limit;
            while !self.all_gone() && Instant::now() < deadline {
                sleep(Duration::from_millis(1)).await;
                self.reap();
            }
            self.list
                .iter()
                .for_each(|process| self.kill(process.child));
        }
        self.end_descendants(Instant::now() + limit).await;
    }
}

/// Returns true if a process has a handler for a signal, awaits it in sigwait, or blocks it, as for
/// signalfd.
fn takes(pid: Pid, signal: Signal) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{}/status", pid.as_raw_nonzero()));
    takes_by(&status.unwrap_or_default(), signal)
        || awaited(pid).is_some_and(|mask| mask >> (signal.as_raw() - 1) & 1 == 1)
}

/// Returns the signals that the first thread of a process awaits in sigwait. The kernel does not
/// show them as blocked meanwhile.
fn awaited(pid: Pid) -> Option<u64> {
    let dir = format!("/proc/{}", pid.as_raw_nonzero());
    let call = std::fs::read_to_string(format!("{dir}/syscall")).ok()?;
    let (number, arguments) = call.split_once(" 0x")?;
    if number.parse() != Ok(libc::SYS_rt_sigtimedwait) {
        return None;
    }
    let address = u64::from_str_radix(arguments.split(' ').next()?, 16).ok()?;
    let mut mask = [0; 8];
    File::open(format!("{dir}/mem"))
        .ok()?
        .read_exact_at(&mut mask, address)
        .ok()?;
    Some(u64::from_ne_bytes(mask))
}

/// Returns true if `status`, of /proc/PID/status, shows that the process handles or blocks a
/// signal. A process that blocks all signals does so for a short time only, for example while a
/// library starts threads; a pending signal would kill it afterwards.
fn takes_by(status: &str, signal: Signal) -> bool {
    /// The bits of the signals that cannot be blocked: SIGKILL, SIGSTOP and two of the C library.
    const UNBLOCKABLE: u64 = 1 << 8 | 1 << 18 | 1 << 31 | 1 << 32;
    let mask = |name| {
        let mask = status.lines().find_map(|line| line.strip_prefix(name));
        mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
            .unwrap_or(0)
    };
    let blocked = Some(mask("SigBlk:")).filter(|blocked| blocked | UNBLOCKABLE != u64::MAX);
    (mask("SigCgt:") | blocked.unwrap_or(0)) >> (signal.as_raw() - 1) & 1 == 1
}

/// Reaps all processes that have ended. Returns true if a child is left.
fn has_children() -> bool {
    loop {
        match leftovers::wait() {
            Ok(Some(_)) | Err(Errno::INTR) => {}
            Ok(None) => return true,
            Err(_) => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_take_signals_with_a_handler_or_blocked() {
        let takes = |blocked: u64, caught: u64| {
            let status = format!("Name:\ta\nSigBlk:\t{blocked:016x}\nSigCgt:\t{caught:016x}\n");
            takes_by(&status, Signal::USR1)
        };
        let usr1 = 1 << (Signal::USR1.as_raw() - 1);
        assert!(takes(0, usr1));
        assert!(takes(usr1, 0));
        assert!(!takes(usr1 << 1, usr1 >> 1));
        assert!(!takes(0xffff_fffe_7ffb_feff, 0), "what sigfillset makes");
        assert!(!takes_by("", Signal::USR1));
    }
}
