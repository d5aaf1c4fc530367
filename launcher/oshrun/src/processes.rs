//! The processes of a job: one group per PE, seen until the last of it is gone.
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

#[derive(Debug)]
struct Process {
    pid: Pid,
    exit: Option<Exit>,
    /// Whether its group is known to be empty.
    gone: bool,
}

/// The processes of a job, by PE, and the guard that knows their groups, too.
#[derive(Debug)]
pub struct Processes {
    by_pe: Vec<Process>,
    guard: Guard,
}

impl Processes {
    /// No process yet but the guard.
    ///
    /// # Errors
    /// When the guard cannot be started.
    pub fn new() -> io::Result<Processes> {
        // Where it is refused, init has the orphans as everywhere.
        let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
        Ok(Processes { by_pe: Vec::new(), guard: Guard::start()? })
    }

    /// The guard, to whom a new process announces itself.
    pub fn guard(&self) -> &Guard {
        &self.guard
    }

    /// Adds the process of the next PE.
    pub fn add(&mut self, pid: Pid) {
        self.by_pe.push(Process { pid, exit: None, gone: false });
    }

    /// Waits for whatever has ended and returns the PEs among them, the lowest first.
    pub fn reap(&mut self) -> Vec<(u32, Exit)> {
        let mut exits = Vec::new();
        while let Ok(Some((pid, status))) = rustix::process::wait(WaitOptions::NOHANG) {
            let alive = (0..)
                .zip(&mut self.by_pe)
                .find(|(_, process)| process.pid == pid && process.exit.is_none());
            if let Some((pe, process)) = alive {
                let signal = || Exit::Signal(status.terminating_signal().unwrap_or_default());
                let exit = status.exit_status().map_or_else(signal, Exit::Status);
                process.exit = Some(exit);
                exits.push((pe, exit));
            }
        }
        for process in
            self.by_pe.iter_mut().filter(|process| process.exit.is_some() && !process.gone)
        {
            process.gone =
                rustix::process::test_kill_process_group(process.pid) == Err(Errno::SRCH);
            if process.gone {
                self.guard.forget(process.pid);
            }
        }
        exits.sort_unstable_by_key(|(pe, _)| *pe);
        exits
    }

    /// Whether the process of every PE has exited.
    pub fn all_exited(&self) -> bool {
        self.by_pe.iter().all(|process| process.exit.is_some())
    }

    /// The PEs that have not exited.
    pub fn alive(&self) -> Vec<u32> {
        (0..)
            .zip(&self.by_pe)
            .filter(|(_, process)| process.exit.is_none())
            .map(|(pe, _)| pe)
            .collect()
    }

    /// Sends a signal to every group.
    pub fn signal(&self, signal: Signal) {
        for process in self.by_pe.iter().filter(|process| !process.gone) {
            // It may belong to another user, by sudo; there is nothing better to do then.
            let _ = rustix::process::kill_process_group(process.pid, signal);
        }
    }

    /// Kills whatever is left of the groups and waits until it is gone, and the guard with it, but no longer than
    /// `patience`; the guard stays for what does not go.
    pub async fn clear(mut self, patience: Duration) {
        let deadline = Instant::now() + patience;
        self.signal(Signal::KILL);
        loop {
            self.reap();
            if self.by_pe.iter().all(|process| process.gone) {
                return self.guard.dismiss();
            }
            if Instant::now() > deadline {
                return;
            }
            sleep(Duration::from_millis(1)).await;
        }
    }
}
