//! A pipe through which the kernel kills PEs when this process ends, even if the guard was killed
//! too.
//!
//! Only this process holds the write end, and it writes nothing. A PE requests SIGKILL for the end
//! of the pipe when it joins the job (`rushmem_bootstrap`). The kernel signals one process per open
//! file description, so each PE gets its own.

use std::fs::File;
use std::io::{self, PipeWriter};
use std::os::fd::{AsRawFd, OwnedFd};

use crate::spawn::descriptors::INHERITED_FROM;

/// The write end.
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
