//! Ends all processes of a job: when the PEs have ended (`processes`, `descendants`), and when
//! oshrun is killed (`guard`, [`LivenessPipe`]). `mark` identifies the processes of the job, and
//! `leftovers` removes files that they leave.

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
    /// The guard, which kills the process group of the PE.
    pub guard: &'a GuardProcess,
    /// The pipe whose end of file makes the kernel kill the PE.
    pub liveness: &'a LivenessPipe,
    /// The mark by which processes outside the group are found.
    pub mark: &'a JobMark,
}

/// A pipe whose end of file makes the kernel kill the PEs, even if the guard was killed, too.
///
/// Only this process holds the write end, and writes nothing, so the pipe ends with this process. A
/// PE requests SIGKILL for that event when it joins the job (`rushmem_bootstrap`). The kernel
/// signals one process for each open file description, so each PE gets a description of its own.
#[derive(Debug)]
pub struct LivenessPipe(PipeWriter);

impl LivenessPipe {
    /// Creates the pipe.
    pub fn new() -> io::Result<LivenessPipe> {
        // The read end is dropped: `for_pe` opens another one for each PE.
        let (_, write) = io::pipe()?;
        Ok(LivenessPipe(write))
    }

    /// Opens the read end for a PE.
    pub fn for_pe(&self) -> io::Result<OwnedFd> {
        let opened = File::open(format!("/proc/self/fd/{}", self.0.as_raw_fd()))?;
        Ok(rustix::io::fcntl_dupfd_cloexec(&opened, INHERITED_FROM)?)
    }
}
