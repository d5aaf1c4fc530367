//! A pipe whose end makes the kernel kill PEs: each PE that has joined its job is killed when this process is gone, whatever
//! else was killed with it and whatever the PE is doing.
//!
//! Only this process holds the end for writing, and nothing is ever written. A PE asks the kernel for the signal
//! (`rushmem_bootstrap`), which goes to one process for each time that the pipe was opened: so each PE has its own.

use std::fs::File;
use std::io::{self, PipeWriter};
use std::os::fd::{AsRawFd, OwnedFd};

use crate::limits::INHERITED_FROM;

/// This process's end.
#[derive(Debug)]
pub struct Liveness(PipeWriter);

impl Liveness {
    /// A pipe that no PE has yet.
    ///
    /// # Errors
    /// When there are no descriptors left.
    pub fn new() -> io::Result<Liveness> {
        Ok(Liveness(io::pipe()?.1))
    }

    /// The end for one PE.
    ///
    /// # Errors
    /// When there are no descriptors left, or /proc is missing.
    pub fn for_pe(&self) -> io::Result<OwnedFd> {
        let opened = File::open(format!("/proc/self/fd/{}", self.0.as_raw_fd()))?;
        Ok(rustix::io::fcntl_dupfd_cloexec(&opened, INHERITED_FROM)?)
    }
}
