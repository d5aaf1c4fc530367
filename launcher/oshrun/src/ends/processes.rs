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

/// The exit of a child.
#[derive(Clone, Copy, Debug)]
pub struct ChildExit {
    pub child: Child,
    pub exit: Exit,
}

/// A PE that has not exited.
#[derive(Clone, Copy, Debug)]
pub struct AlivePe {
    pub pe: u32,
    pub pid: Pid,
}

/// A child and the state of its process group.
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
        let own = rustix::process::getpid();
        // If this fails, init adopts the orphans.
        let _ = rustix::process::set_child_subreaper(Some(own));

        // Usually there are no children yet, and then /proc is not searched.
        let foreign = if has_children_after_reaping() {
            descendants::children(own)
        } else {
            HashSet::new()
        };

        let liveness = LivenessPipe::new()?;
        let mark = JobMark::new();
        let guard = GuardProcess::start(&mark)?;
        Ok(Processes {
            list: Vec::new(),
            guard: Some(guard),
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
    pub fn reap(&mut self) -> Vec<ChildExit> {
        let mut exits = Vec::new();
        while let Ok(Some((pid, status))) = leftovers::wait() {
            self.foreign.remove(&pid);
            // A process of the list that has exited is passed over: an orphan may have its number.
            let mut started = self.list.iter_mut();
            let ended = started.find(|process| process.pid == pid && process.exit.is_none());
            let Some(process) = ended else {
                continue;
            };

            let exit = match status.exit_status() {
                Some(status) => Exit::Status(status),
                None => Exit::Signal(status.terminating_signal().unwrap_or_default()),
            };
            process.exit = Some(exit);
            exits.push(ChildExit {
                child: process.child,
                exit,
            });
        }

        for process in &mut self.list {
            if process.exit.is_none() || process.is_gone {
                continue;
            }

            process.is_gone =
                rustix::process::test_kill_process_group(process.pid) == Err(Errno::SRCH);
            if process.is_gone
                && let Some(guard) = &self.guard
            {
                guard.forget(process.pid);
            }
        }

        exits.sort_unstable_by_key(|exit| exit.child);
        exits
    }

    /// Returns true if all groups are empty.
    fn all_gone(&self) -> bool {
        self.list.iter().all(|process| process.is_gone)
    }

    /// Returns the PEs that have not exited.
    pub fn alive(&self) -> impl Iterator<Item = AlivePe> {
        self.list.iter().filter_map(|process| match process.child {
            Child::Pe(pe) if process.exit.is_none() => Some(AlivePe {
                pe,
                pid: process.pid,
            }),
            _ => None,
        })
    }

    /// Sends a signal to every PE's group.
    pub fn signal(&self, signal: Signal) {
        for group in self.pe_groups() {
            // This fails if the group is empty, or belongs to another user, as one that sudo has
            // started.
            let _ = rustix::process::kill_process_group(group, signal);
        }
    }

    /// Returns the groups of the PEs that may have processes.
    fn pe_groups(&self) -> impl Iterator<Item = Pid> {
        self.list
            .iter()
            .filter(|process| process.is_pe() && !process.is_gone)
            .map(|process| process.pid)
    }

    /// Sends a signal to those processes of the PEs' groups that handle, block or await it.
    pub fn signal_takers(&self, signal: Signal) {
        let groups: HashSet<Pid> = self.pe_groups().collect();
        for process in descendants::running() {
            let is_in_group = process.group.is_some_and(|group| groups.contains(&group));
            if is_in_group && takes(process.pid, signal) {
                // This fails if the process has ended.
                let _ = rustix::process::kill_process(process.pid, signal);
            }
        }
    }

    /// Kills the group of a child.
    pub fn kill(&self, child: Child) {
        let present = self
            .list
            .iter()
            .find(|process| process.child == child && !process.is_gone);
        if let Some(process) = present {
            // This fails if the group has become empty.
            let _ = rustix::process::kill_process_group(process.pid, Signal::KILL);
        }
    }

    /// Kills all processes in the PEs' groups, and waits until they have ended or `limit` has
    /// passed. If all groups are then empty, also those of launch agents, kills the processes that
    /// left their group. Returns the children that ended meanwhile.
    pub async fn kill_all(&mut self, limit: Duration) -> Vec<ChildExit> {
        let deadline = Instant::now() + limit;
        self.signal(Signal::KILL);

        let mut exits = Vec::new();
        loop {
            exits.extend(self.reap());
            if self.pe_groups().next().is_none() || Instant::now() > deadline {
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
        if self.kill_descendants(deadline).await
            && let Some(guard) = self.guard.take()
        {
            guard.dismiss();
        }
    }

    /// Kills processes that left their group. Returns true once /proc shows none. If it shows no
    /// process of this namespace, that is immediately. Returns false at the deadline.
    async fn kill_descendants(&self, deadline: Instant) -> bool {
        let me = rustix::process::getpid();
        // True once a scan has found children that must stay. If there are such children, the
        // existence of children does not show that others are left.
        let some_stay = Cell::new(false);
        let is_left = |process: &descendants::Descendant| {
            if process.parent != Some(me) {
                return false;
            }
            let must_stay = self.is_known_child(process.pid)
                || mark::is_of_agent(&descendants::environment(process.pid));
            if must_stay {
                some_stay.set(true);
            }
            !must_stay
        };

        // A subreaper without children has no descendants.
        while descendants::are_shown() && has_children_after_reaping() {
            // After most jobs, the guard is the only child.
            if let Some(guard) = &self.guard
                && descendants::is_only_child(guard.pid())
            {
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

    /// Returns true for a child that must not be killed as one that left its group: a foreign one,
    /// the guard, or one that this process has started and that has not exited.
    fn is_known_child(&self, pid: Pid) -> bool {
        self.foreign.contains(&pid)
            || self.guard.as_ref().is_some_and(|guard| guard.pid() == pid)
            || self
                .list
                .iter()
                .any(|process| process.pid == pid && process.exit.is_none())
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
            for process in &self.list {
                self.kill(process.child);
            }
        }

        self.end_descendants(Instant::now() + limit).await;
    }
}

/// Returns true if a process handles a signal, awaits it in sigwait, or blocks it, as one that uses
/// signalfd does.
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

    // The first argument of the system call is the address of the set.
    let address = u64::from_str_radix(arguments.split(' ').next()?, 16).ok()?;
    let memory = File::open(format!("{dir}/mem")).ok()?;
    let mut mask = [0; 8];
    memory.read_exact_at(&mut mask, address).ok()?;
    Some(u64::from_ne_bytes(mask))
}

/// Returns true if `status`, the text of /proc/PID/status, shows that the process handles or blocks
/// a signal. If it blocks all signals, that does not count: it does so for a short time only, for
/// example while a library starts threads, and the pending signal would kill it afterwards.
fn takes_by(status: &str, signal: Signal) -> bool {
    /// The bits of the signals that cannot be blocked: SIGKILL, SIGSTOP and two of the C library.
    const UNBLOCKABLE: u64 = 1 << 8 | 1 << 18 | 1 << 31 | 1 << 32;
    let mask = |name| {
        let mask = status.lines().find_map(|line| line.strip_prefix(name));
        u64::from_str_radix(mask.unwrap_or_default().trim(), 16).unwrap_or(0)
    };

    let mut taken = mask("SigCgt:");
    let blocked = mask("SigBlk:");
    if blocked | UNBLOCKABLE != u64::MAX {
        taken |= blocked;
    }
    taken >> (signal.as_raw() - 1) & 1 == 1
}

/// Reaps all processes that have ended. Returns true if a child is left.
fn has_children_after_reaping() -> bool {
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
