//! Makes snapshots of the PEs of a node without their help: from the statuses in the memory of the
//! node, from the kernel, and from the symbol table of the program.

use crate::process::{self, ProcessStat};
use crate::snapshot::{PeSnapshot, ProcessState, WaitId};
use crate::status::{self, STATUS_BYTES, Stage, Status, SymmetricLocation, Word};
use crate::status_slot;
use crate::symbols;
use crate::writes::{self, LastWrite, RING_BYTES};
use rushmem_system::clock::nanoseconds_of_host as now;
use rustix::process::{Pid, Signal, kill_process};
use std::time::Duration;

/// The time between two reads of the state of a process, which show whether it uses CPU time.
pub const PAUSE: Duration = Duration::from_millis(200);

/// The time within which a PE that polls repeats its call. A PE that repeats a call less often is
/// reported as one that computes.
const REPEATED_WITHIN: Duration = Duration::from_millis(300);
/// The time within which a PE finds the location of the call: it reads debug information. A call is
/// reported without a location if this takes longer.
const LOCATED_WITHIN: Duration = Duration::from_secs(3);
/// The time between two reads of the status of a PE that was asked.
const ANSWER_INTERVAL: Duration = Duration::from_millis(20);

/// The memory that the PEs of a node share.
pub trait SharedMemory {
    /// Copies the bytes at an offset. Returns false if they cannot be read.
    fn read(&self, offset: u64, bytes: &mut [u8]) -> bool;

    /// Copies bytes of a static variable of the PE with this local number. Returns false if they
    /// cannot be read.
    fn read_static(&self, local: u32, address: u64, bytes: &mut [u8]) -> bool;
}

/// A PE of this node.
#[derive(Clone, Copy, Debug)]
pub struct LocalPe {
    /// The world PE.
    pub pe: u32,
    /// The number of the PE on its node.
    pub local: u32,
    /// The process that was started for it, which may be a wrapper; `None` if it is not known.
    pub pid: Option<u32>,
}

/// The first of two reads of a PE's process.
struct FirstRead {
    pid: u32,
    /// `None` if the process has ended.
    stat: Option<ProcessStat>,
}

/// Makes snapshots of the PEs of a node.
#[derive(Clone, Debug)]
pub struct Collector<M> {
    /// Reads the memory that the PEs of the node share.
    pub memory: M,
    /// The offset in that memory of the status of the node's first PE, in bytes.
    pub offset: u64,
    /// The distance between the statuses of two PEs, in bytes.
    pub stride: u64,
}

impl<M: SharedMemory> Collector<M> {
    /// Makes a snapshot of each PE. `pause` is the time between two reads of the state of its
    /// process. Without it, a snapshot does not show what the process and its threads compute, and
    /// has no names of variables.
    pub fn snapshots(&self, pes: &[LocalPe], pause: Option<Duration>) -> Vec<PeSnapshot> {
        let read_process = |pid: u32, status: Option<&Status>| match pause {
            Some(_) => process::read(pid, status),
            None => process::read_stat(pid),
        };
        let first_reads: Vec<Option<FirstRead>> = pes
            .iter()
            .map(|pe| {
                let status = self.status(pe.local);
                let pid = pe.process(status.as_ref())?;
                let stat = read_process(pid, status.as_ref());
                Some(FirstRead { pid, stat })
            })
            .collect();

        if let Some(pause) = pause {
            std::thread::sleep(pause);
        }

        // The status is read after the pause, so it is not older than the state of the process.
        let mut snapshots: Vec<PeSnapshot> = pes.iter().map(|pe| self.snapshot(pe)).collect();
        for (snapshot, first) in snapshots.iter_mut().zip(&first_reads) {
            if let Some(first) = first {
                let after = read_process(first.pid, snapshot.status.as_ref());
                add_process(snapshot, first, after.as_ref());
            }
        }

        if let Some(pause) = pause {
            self.read_again(pes, &mut snapshots, pause);
            self.find_polls(pes, &mut snapshots);
            let pids = first_reads
                .iter()
                .map(|first| first.as_ref().map(|first| first.pid));
            symbols::add(snapshots.iter_mut().zip(pids));
        }
        snapshots
    }

    /// Reads the statuses of the PEs that sleep, but do not wait according to their status, once
    /// more after `pause`: a wait is in the status only after 10 ms, or more on a busy machine.
    fn read_again(&self, pes: &[LocalPe], snapshots: &mut [PeSnapshot], pause: Duration) {
        let may_wait = |snapshot: &PeSnapshot| {
            let is_initialized = snapshot.status.as_ref().is_some_and(|status| {
                status.stage == Stage::Initialized && status.waits.is_empty()
            });
            is_initialized && snapshot.process == ProcessState::Sleeps
        };
        if !snapshots.iter().any(may_wait) {
            return;
        }

        std::thread::sleep(pause);
        for (pe, snapshot) in pes.iter().zip(snapshots) {
            if !may_wait(snapshot) {
                continue;
            }
            let new = self.snapshot(pe);
            if new.status.as_ref().is_some_and(|new| !new.waits.is_empty()) {
                *snapshot = PeSnapshot {
                    other_threads: snapshot.other_threads,
                    has_no_main_thread: snapshot.has_no_main_thread,
                    ..new
                };
            }
        }
    }

    /// Asks the PEs that use CPU time, but do not wait, for the calls that they repeat, and adds
    /// these to the snapshots. Only a PE that computes gets the signal, which may end the sleep of
    /// a thread.
    fn find_polls(&self, pes: &[LocalPe], snapshots: &mut [PeSnapshot]) {
        let asked_at = now();
        let mut asked = Vec::new();
        for (pe, snapshot) in pes.iter().zip(snapshots) {
            let Some(status) = &mut snapshot.status else {
                continue;
            };
            // It may be from an earlier question, and the PE does something else by now.
            status.poll = None;

            let is_busy = matches!(snapshot.process, ProcessState::Runs { .. });
            if !is_busy || !status.finds_polls || !status.waits.is_empty() {
                continue;
            }
            let process = pe
                .process(Some(status))
                .and_then(|pid| Pid::from_raw(pid as i32));
            if process.is_some_and(|pid| kill_process(pid, Signal::URG).is_ok()) {
                asked.push((pe.local, status));
            }
        }

        let mut waited = Duration::ZERO;
        while !asked.is_empty() && waited < LOCATED_WITHIN {
            std::thread::sleep(ANSWER_INTERVAL);
            waited += ANSWER_INTERVAL;

            // A PE that has not repeated a call soon does not poll. One that has is given more time
            // to find the location of the call in its debug information.
            asked.retain_mut(|(local, status)| {
                let answer = self.status(*local).and_then(|status| status.poll);
                status.poll = answer.filter(|poll| poll.at >= asked_at);
                match &status.poll {
                    Some(poll) => !poll.is_searched,
                    None => waited < REPEATED_WITHIN,
                }
            });
        }
    }

    /// Returns the waits of these PEs that have lasted at least `limit`, and may never end.
    pub fn long_waits(&self, pes: &[LocalPe], limit: Duration) -> Vec<WaitId> {
        let mut long = Vec::new();
        for pe in pes {
            let snapshot = self.status_snapshot(pe);
            let waits = snapshot.unlimited_waits().filter(|(_, age)| *age >= limit);
            long.extend(waits.map(|(id, _)| id));
        }
        long
    }

    /// Returns the status of the PE with this local number, if it has written one that can be read.
    pub fn status(&self, local: u32) -> Option<Status> {
        let offset = self.status_offset(local)?;
        status_slot::read(|nbytes| self.copy(offset, nbytes))
    }

    fn status_snapshot(&self, pe: &LocalPe) -> PeSnapshot {
        let status = self.status(pe.local);
        PeSnapshot {
            status,
            read_at: now(),
            ..PeSnapshot::new(pe.pe, ProcessState::Sleeps)
        }
    }

    fn snapshot(&self, pe: &LocalPe) -> PeSnapshot {
        let mut snapshot = self.status_snapshot(pe);
        if let Some(status) = &snapshot.status {
            let words = status.waits.iter().filter_map(status::words_of);
            snapshot.values = words
                .flat_map(|words| &words.words)
                .map(|word| self.value(pe.local, word))
                .collect();
        }
        snapshot.writes = self.writes(pe.local);
        snapshot
    }

    fn writes(&self, local: u32) -> Option<Vec<LastWrite>> {
        let offset = self
            .status_offset(local)?
            .checked_add(STATUS_BYTES as u64)?;
        writes::read(|| self.copy(offset, RING_BYTES))
    }

    fn status_offset(&self, local: u32) -> Option<u64> {
        self.offset
            .checked_add(self.stride.checked_mul(local.into())?)
    }

    fn copy(&self, offset: u64, nbytes: usize) -> Option<Vec<u8>> {
        let mut bytes = vec![0; nbytes];
        if !self.memory.read(offset, &mut bytes) {
            return None;
        }
        Some(bytes)
    }

    /// Returns the value of a word of the PE with this local number, if it can be read.
    fn value(&self, local: u32, word: &Word) -> Option<u64> {
        let mut bytes = [0; 8];
        let low = bytes.get_mut(..usize::from(word.nbytes))?;
        let is_read = match (&word.location, word.in_memfd) {
            (_, Some(offset)) if self.memory.read(offset, low) => true,
            (SymmetricLocation::Static { address }, _) => {
                self.memory.read_static(local, *address, low)
            }
            _ => false,
        };
        if !is_read {
            return None;
        }

        // The low bytes come first on all machines that Rushmem supports.
        Some(u64::from_le_bytes(bytes))
    }
}

impl LocalPe {
    /// Returns the process of the PE: the one of its status, if this process is in the same PID
    /// namespace, or else the one that was started. `None` if /proc shows neither.
    pub fn process(&self, status: Option<&Status>) -> Option<u32> {
        let own = process::pid_namespace()?;
        match status {
            Some(status) if status.pid_namespace == own && is_process_id(status.pid) => {
                Some(status.pid)
            }
            _ => self.pid,
        }
    }
}

/// Returns true if a process may have this ID. The status of a PE may be damaged, and kill takes
/// other numbers for groups of processes.
fn is_process_id(pid: u32) -> bool {
    i32::try_from(pid).is_ok_and(|pid| pid > 0)
}

/// Adds to a snapshot what the kernel shows of the process, which was read twice.
fn add_process(snapshot: &mut PeSnapshot, first: &FirstRead, after: Option<&ProcessStat>) {
    snapshot.process = process::between(first.stat.as_ref(), after);
    let (Some(before), Some(after)) = (&first.stat, after) else {
        return;
    };
    snapshot.has_no_main_thread = after.has_no_main_thread();

    // A process without a status may not have initialized the library yet.
    let Some(status) = &snapshot.status else {
        return;
    };
    // Otherwise the process may be a wrapper around that of the PE.
    let is_of_pe = status.pid_namespace != 0 && status.pid == first.pid;
    snapshot.other_threads = process::other_threads(first.pid, before, after);
    let runs = matches!(
        snapshot.process,
        ProcessState::Runs { .. } | ProcessState::Sleeps
    );
    if is_of_pe
        && runs
        && let Some(name) = process::other_program(first.pid)
    {
        snapshot.process = ProcessState::RunsOtherProgram(name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::Stage;

    #[test]
    fn a_number_that_no_process_has_is_not_signaled() {
        let pe = LocalPe {
            pe: 0,
            local: 0,
            pid: Some(7),
        };
        let process = |pid| {
            let mut status = Status::new(pid, Stage::Initialized);
            status.pid_namespace = process::pid_namespace().expect("/proc");
            pe.process(Some(&status))
        };
        assert_eq!(process(8), Some(8));
        for pid in [0, u32::MAX, 1 << 31] {
            assert_eq!(process(pid), Some(7), "{pid}");
        }
    }
}
