//! What is known of a PE from outside: its status, and what the kernel knows of its process.

use crate::status::Status;
use crate::writes::LastWrite;
use serde::{Deserialize, Serialize};

/// A report on one PE.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PeReport {
    /// The PE.
    pub pe: u32,
    /// What is known of its process.
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
}

/// How many threads of a PE do something else than wait in the library.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OtherThreads {
    /// Those that used CPU time between two looks. The PE is then not blocked, although threads of
    /// it wait.
    pub busy: u32,
    /// Those that sleep in a system call that ends without help of another thread, such as
    /// `nanosleep` or `read`, or wait for a CPU.
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
    /// It sleeps in the kernel.
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
