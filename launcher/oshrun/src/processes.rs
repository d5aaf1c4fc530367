//! The processes of a job: one group per PE, seen until the last of it is gone.
//!
//! A PE that has exited is not waited for before the end of the job: its zombie keeps the kernel from giving the number
//! of its group to a stranger, so a group can be signalled at any time.
#![forbid(unsafe_code)]

use std::time::Duration;

use rushmem_bootstrap::Exit;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, waitid};
use tokio::time::{Instant, sleep};

#[derive(Debug)]
struct Process {
    pid: Pid,
    exit: Option<Exit>,
}

/// The processes of a job, by PE.
#[derive(Debug, Default)]
pub struct Processes {
    by_pe: Vec<Process>,
}

impl Processes {
    /// Adds the process of the next PE.
    pub fn add(&mut self, pid: Pid) {
        self.by_pe.push(Process { pid, exit: None });
    }

    /// The PEs that have exited since the last call.
    pub fn new_exits(&mut self) -> Vec<(u32, Exit)> {
        let mut exits = Vec::new();
        let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        for (pe, process) in
            (0..).zip(&mut self.by_pe).filter(|(_, process)| process.exit.is_none())
        {
            if let Ok(Some(status)) = waitid(WaitId::Pid(process.pid), look) {
                let signal = || Exit::Signal(status.terminating_signal().unwrap_or_default());
                let exit = status.exit_status().map_or_else(signal, Exit::Status);
                process.exit = Some(exit);
                exits.push((pe, exit));
            }
        }
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
        for process in &self.by_pe {
            // A group may be over, or belong to another user; there is nothing better to do with either.
            let _ = rustix::process::kill_process_group(process.pid, signal);
        }
    }

    /// Kills whatever is left of the groups and waits until it is gone, no longer than `patience`. Returns whether all
    /// is gone.
    pub async fn clear(self, patience: Duration) -> bool {
        let deadline = Instant::now() + patience;
        // Orphans of a group come to oshrun instead of an init that may not care for them. Where that is refused, init
        // has them as before.
        let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
        self.signal(Signal::KILL);
        let mut groups: Vec<Pid> = self.by_pe.iter().map(|process| process.pid).collect();
        loop {
            groups.retain(|&group| {
                while let Ok(Some(_)) =
                    waitid(WaitId::Pgid(Some(group)), WaitIdOptions::EXITED | WaitIdOptions::NOHANG)
                {
                }
                rustix::process::test_kill_process_group(group).is_ok()
            });
            if groups.is_empty() || Instant::now() > deadline {
                return groups.is_empty();
            }
            sleep(Duration::from_millis(1)).await;
        }
    }
}
