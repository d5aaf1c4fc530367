//! Ends all processes of a job: when the PEs have ended (`processes`, `descendants`), and when oshrun
//! is killed (`guard`, and the pipe here). `mark` identifies the processes of the job, and `leftovers`
//! removes files that they leave.

pub mod descendants;
pub mod guard;
pub mod leftovers;
pub mod mark;
pub mod processes;

use std::fs::File;
use std::io::{self, PipeWriter};
use std::os::fd::{AsRawFd, OwnedFd};

use self::guard::GuardProcess;
use self::mark::JobMark;
use crate::spawn::limits::INHERITED_FROM;

/// The mechanisms that end a PE when the process that started it ends.
#[derive(Clone, Copy, Debug)]
pub struct EndMechanisms<'a> {
    /// Kills the process group of the PE.
    pub guard: &'a GuardProcess,
    /// Makes the kernel kill the PE.
    pub liveness: &'a LivenessPipe,
    /// Identifies processes outside the group.
    pub mark: &'a JobMark,
}

/// A pipe through which the kernel kills PEs when this process ends, even if the guard was killed
/// too.
///
/// Only this process holds the write end, and it writes nothing. A PE requests SIGKILL for the end
/// of the pipe when it joins the job (`rushmem_bootstrap`). The kernel signals one process per open
/// file description, so each PE gets its own.
#[derive(Debug)]
pub struct LivenessPipe(PipeWriter);

impl LivenessPipe {
    /// Creates the pipe.
    pub fn new() -> io::Result<LivenessPipe> {
        Ok(LivenessPipe(io::pipe()?.1))
    }

    /// Opens the read end for a PE.
    pub fn for_pe(&self) -> io::Result<OwnedFd> {
        let opened = File::open(format!("/proc/self/fd/{}", self.0.as_raw_fd()))?;
        Ok(rustix::io::fcntl_dupfd_cloexec(&opened, INHERITED_FROM)?)
    }
}
