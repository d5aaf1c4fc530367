//! A snapshot of a PE: its status, and what the kernel says about its process.

use crate::status::{Status, Wait};
use crate::writes::LastWrite;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The state of one PE.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PeSnapshot {
    /// The world PE.
    pub pe: u32,
    /// The state of its process.
    pub process: ProcessState,
    /// The status; `None` if the PE has not written one yet, or it cannot be read.
    pub status: Option<Status>,
    /// When the status was read: nanoseconds of `CLOCK_MONOTONIC` of the same host, as all times of
    /// statuses (`rushmem_system::clock`).
    pub read_at: u64,
    /// The values of the awaited words, in the order of waits and words; `None` for a value that
    /// cannot be read.
    pub values: Vec<Option<u64>>,
    /// The names of the static variables that the status and the writes mention.
    pub symbols: Vec<StaticSymbol>,
    /// The last writes to other PEs; `None` if the PE records none, or they cannot be read.
    pub writes: Option<Vec<LastWrite>>,
    /// The threads that neither wait according to the status nor belong to the library.
    pub other_threads: OtherThreads,
    /// True if the main thread has ended, but others go on.
    pub has_no_main_thread: bool,
    /// The innermost functions of each thread, if gdb has found them.
    pub stacks: Vec<String>,
}

/// The name of an address in static data.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StaticSymbol {
    /// The address in the executable.
    pub address: u64,
    /// The variable with an index or offset, such as `flag[2]`.
    pub name: String,
}

/// The numbers of threads of a PE that do not wait in the library.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OtherThreads {
    /// The number of threads that have used CPU time between two reads. If there are any, the PE is
    /// not blocked, although other threads of it wait.
    pub busy: u32,
    /// The number of threads that wait for a CPU, or sleep in a system call that ends without the
    /// help of another thread, such as `nanosleep` or `read`.
    pub sleeping: u32,
}

/// The state of a process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ProcessState {
    /// It has used CPU time between two reads of its state, or was running at both.
    Runs {
        /// The CPU time that it has used, in milliseconds.
        cpu_ms: u64,
        /// The time between the reads, in milliseconds.
        of_ms: u64,
    },
    /// It sleeps in the kernel. Also stands for a process whose state was not read.
    Sleeps,
    /// It waits for a disk or for swapped memory (state D).
    WaitsForDisk,
    /// It has called `vfork`, or `posix_spawn`, and waits for the child.
    WaitsForChild,
    /// It has called `exec` after `shmem_init`, and runs the program of this name.
    RunsOtherProgram(String),
    /// It is stopped by a signal.
    Stopped,
    /// A debugger has stopped it.
    Traced,
    /// It has ended. The text says how, if it is known, such as `exited with status 0`.
    Ended(Option<String>),
    /// The state is not known, since this host has not answered.
    HostSilent(String),
}

/// Identifies a wait of a thread, also in later snapshots.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct WaitId {
    /// The world PE.
    pub pe: u32,
    /// The thread, as the kernel of its host numbers it.
    pub thread: u32,
    /// When the wait began: nanoseconds of `CLOCK_MONOTONIC` of its host.
    pub since: u64,
}

impl PeSnapshot {
    /// Creates the snapshot of a PE of which only the process is known.
    pub fn new(pe: u32, process: ProcessState) -> PeSnapshot {
        PeSnapshot {
            pe,
            process,
            status: None,
            read_at: 0,
            values: Vec::new(),
            symbols: Vec::new(),
            writes: None,
            other_threads: OtherThreads::default(),
            has_no_main_thread: false,
            stacks: Vec::new(),
        }
    }

    /// Returns the waits of the PE that may never end, each with its duration. Those with a limit
    /// are left out.
    pub fn unlimited_waits(&self) -> impl Iterator<Item = (WaitId, Duration)> {
        let waits = self.status.iter().flat_map(|status| &status.waits);
        let unlimited = waits.filter(|wait| wait.limit.is_none());
        unlimited.map(|wait| {
            let id = WaitId {
                pe: self.pe,
                thread: wait.thread,
                since: wait.since,
            };
            (id, Duration::from_nanos(self.age(wait)))
        })
    }

    /// Returns the duration of a wait in nanoseconds.
    pub fn age(&self, wait: &Wait) -> u64 {
        self.read_at.saturating_sub(wait.since)
    }
}
