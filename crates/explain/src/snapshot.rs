//! The state of a PE at one time: its status, and the kernel's view of its process.

use crate::status::{Status, Wait};
use crate::writes::LastWrite;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The state of one PE.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PeSnapshot {
    /// The PE.
    pub pe: u32,
    /// The state of its process.
    pub process: ProcessState,
    /// Its status; `None` if it has not come so far, or the status cannot be read.
    pub status: Option<Status>,
    /// When the status was read: nanoseconds of `CLOCK_MONOTONIC` of the same host.
    pub read_at: u64,
    /// The values of the words of its waits, in the order of waits and words; `None` where they
    /// cannot be read.
    pub values: Vec<Option<u64>>,
    /// The names of static variables that the status mentions: an address in the executable, and
    /// the variable with an index or offset, such as `flag[2]`.
    pub symbols: Vec<(u64, String)>,
    /// The last writes to memory of other PEs that it recorded; `None` if it records none, or they
    /// cannot be read.
    pub writes: Option<Vec<LastWrite>>,
    /// Its threads, except those that wait by the status and those of the library.
    pub other_threads: OtherThreads,
    /// The innermost functions of each thread, where gdb has shown them.
    pub stacks: Vec<String>,
}

/// The numbers of threads of a PE that do something else than wait in the library.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OtherThreads {
    /// The number of threads that used CPU time between two looks. The PE is then not blocked,
    /// although threads of it wait.
    pub busy: u32,
    /// The number of threads that sleep in a system call that ends without help of another thread,
    /// such as `nanosleep` or `read`, or wait for a CPU.
    pub sleeping: u32,
}

/// The state of a process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ProcessState {
    /// It used this many milliseconds of CPU time between two looks.
    Runs {
        /// CPU time.
        cpu_ms: u64,
        /// Time between the looks.
        of_ms: u64,
    },
    /// It sleeps in the kernel, or nothing is known of it.
    Sleeps,
    /// It waits for a disk or for swapped memory (state D).
    WaitsForDisk,
    /// It is stopped by a signal.
    Stopped,
    /// A debugger has stopped it.
    Traced,
    /// It has ended; how, in words, such as `exited with status 0`.
    Ended(String),
    /// It is not known: its host, which is named here, did not answer.
    HostSilent(String),
}

/// A wait of a thread of a PE.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct WaitId {
    /// The PE.
    pub pe: u32,
    /// The thread.
    pub thread: u32,
    /// When it began, by the clock of its host.
    pub since: u64,
}

impl PeSnapshot {
    /// Returns a PE of which nothing is known but its process.
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
            stacks: Vec::new(),
        }
    }

    /// Returns its waits, each with its age.
    pub fn waits(&self) -> impl Iterator<Item = (WaitId, Duration)> {
        self.status.iter().flat_map(|status| &status.waits).map(|wait| {
            let id = WaitId { pe: self.pe, thread: wait.thread, since: wait.since };
            (id, Duration::from_nanos(self.age(wait)))
        })
    }

    /// Returns how long a wait has lasted, in nanoseconds.
    pub fn age(&self, wait: &Wait) -> u64 {
        self.read_at.saturating_sub(wait.since)
    }
}
