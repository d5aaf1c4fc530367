//! The interface of a process manager to its processes, whichever protocol it speaks.

use std::fmt::Debug;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::fs::{FileType, fstat};
use rustix::io::ioctl_fionread;

use crate::error::Error;
use crate::records::Records;

/// The time for which a reader that has stopped reading may delay the end of the job.
const READ_LIMIT: Duration = Duration::from_secs(1);

/// Time between two polls.
const POLL_INTERVAL: Duration = Duration::from_millis(1);

/// A process's connection to the manager that started it.
///
/// Every process calls [`Manager::fence`] equally often; who puts and who gets is free.
pub(crate) trait Manager: Debug + Send {
    /// Returns the number of this process.
    fn pe(&self) -> u32;

    /// Returns the number of processes.
    fn n_pes(&self) -> u32;

    /// Stores `value`, for everybody to get after the next fence.
    fn put(&mut self, key: &str, value: &[u8]) -> Result<(), Error>;

    /// Waits until every process has called it.
    fn fence(&mut self) -> Result<(), Error>;

    /// Returns what process `from` has put under `key` before the last fence.
    fn get(&mut self, from: u32, key: &str) -> Result<Vec<u8>, Error>;

    /// Exchanges records with all processes, if the manager can do that itself; each calls it.
    fn exchange(&mut self, _record: &[u8]) -> Option<Result<Records, Error>> {
        None
    }

    /// Reports that the last finalize is done, to a manager that watches it.
    fn finalized(&self) {}

    /// Reports that initialization is entered again, to a manager that watches it.
    fn resumed(&self) {}

    /// Returns a handle that ends the job.
    fn ender(&self) -> Arc<dyn Ender>;

    /// Reports that the process is about to exit in good order. The manager accepts no request any
    /// more.
    fn leave(&mut self);
}

/// Ends the job, from any thread at any time.
pub(crate) trait Ender: Debug + Send + Sync {
    /// Requests the manager to kill all processes and to return `status` where it can. Returns
    /// whether the request was sent.
    fn ask(&self, status: i32) -> bool;

    /// Returns the connection that ends with the manager, if a watch may look at it: whether it has
    /// ended, not what arrives.
    fn line(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// Returns true if this process has reported its end to the manager: then the connection may
    /// end.
    fn has_left(&self) -> bool {
        false
    }

    /// Works as [`Ender::ask`], once the manager has read what this process has printed.
    fn end(&self, status: i32) -> bool {
        wait_until_read();
        self.ask(status)
    }
}

/// Returns when nothing is left to read in the pipes that this process prints to, or after
/// [`READ_LIMIT`].
fn wait_until_read() {
    let streams = [rustix::stdio::stdout(), rustix::stdio::stderr()];
    let end = Instant::now() + READ_LIMIT;
    while streams.iter().any(|&stream| is_unread(stream)) && Instant::now() < end {
        sleep(POLL_INTERVAL);
    }
}

/// Returns true if this is a pipe that holds something; both of its ends can be queried.
fn is_unread(stream: BorrowedFd<'_>) -> bool {
    let is_pipe =
        fstat(stream).is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Fifo);
    is_pipe && ioctl_fionread(stream).is_ok_and(|nbytes| nbytes > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::os::fd::AsFd;

    #[test]
    fn a_pipe_is_unread_until_its_reader_has_all() {
        let (mut read, mut write) = std::io::pipe().expect("a pipe");
        assert!(!is_unread(write.as_fd()));
        write.write_all(b"words").expect("room");
        let mut bytes = [0; 4];
        read.read_exact(&mut bytes).expect("words");
        assert!(is_unread(write.as_fd()));
        read.read_exact(&mut bytes[..1]).expect("the last letter");
        assert!(!is_unread(write.as_fd()));
    }

    #[test]
    fn what_is_no_pipe_is_not_waited_for() {
        let file = rustix::fs::memfd_create("test", rustix::fs::MemfdFlags::CLOEXEC);
        let mut file = std::fs::File::from(file.expect("a file"));
        file.write_all(b"words").expect("room");
        std::io::Seek::rewind(&mut file).expect("a file has a position");
        assert!(!is_unread(file.as_fd()));
    }
}
