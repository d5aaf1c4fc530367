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

/// Maximum time by which a manager that does not read what a process prints delays the end of the
/// job.
const READ_LIMIT: Duration = Duration::from_secs(1);

/// Time between two checks of whether a pipe is empty: the kernel does not report that.
const POLL_INTERVAL: Duration = Duration::from_millis(1);

/// The connection of a process to the manager that has started it, or to the meeting of its job.
///
/// Every process calls [`ProcessManager::fence`] the same number of times. Any process may put and
/// get.
pub(crate) trait ProcessManager: Debug + Send {
    /// Returns the number of this process.
    fn pe(&self) -> u32;

    /// Returns the number of processes.
    fn n_pes(&self) -> u32;

    /// Stores `value`, so that every process can get it after the next fence, and before the one
    /// after that.
    fn put(&mut self, key: &str, value: &[u8]) -> Result<(), Error>;

    /// Waits until every process has called this function.
    fn fence(&mut self) -> Result<(), Error>;

    /// Returns the value that process `from` has put under `key` between the last two fences. No
    /// other process may have used this key.
    fn get(&mut self, from: u32, key: &str) -> Result<Vec<u8>, Error>;

    /// Exchanges records with all processes, each of which calls this function. Returns `None` if
    /// the manager has no such exchange.
    fn exchange(&mut self, _record: &[u8]) -> Option<Result<Records, Error>> {
        None
    }

    /// Reports that the last finalize is done, to a manager that checks for it. Afterwards, the end
    /// of this process is no failure, and other processes do not need it.
    fn report_finalize(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Reports that initialization is entered again, to a manager that checks for finalize.
    fn report_resumption(&self) {}

    /// Returns a handle that ends the job.
    fn ender(&self) -> Arc<dyn Ender>;

    /// Reports that the process is about to exit without an error, to a manager that checks for it.
    /// The manager accepts no requests afterwards.
    fn leave(&mut self) {}
}

/// Ends the job. Any thread may call it at any time.
pub(crate) trait Ender: Debug + Send + Sync {
    /// Requests that the manager kill all processes and exit with `status`, if it can. Returns
    /// false if the request could not be sent.
    fn request_end(&self, status: i32) -> bool;

    /// Returns the connection that ends with the manager, if the watch may poll it for its end. The
    /// watch must not read from it.
    fn connection(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// Returns true if this process has reported its exit to the manager, so that the connection
    /// may end.
    fn has_left(&self) -> bool {
        false
    }

    /// Requests the end as soon as the manager has read what this process has printed. Hydra's
    /// proxies end without reading the rest of their pipes, so the message with the reason would be
    /// lost.
    fn end(&self, status: i32) -> bool {
        wait_until_read();
        self.request_end(status)
    }
}

/// Waits until the pipes to which this process prints are empty, at most for [`READ_LIMIT`].
fn wait_until_read() {
    let streams = [rustix::stdio::stdout(), rustix::stdio::stderr()];
    let end = Instant::now() + READ_LIMIT;
    while streams.iter().any(|&stream| is_unread(stream)) && Instant::now() < end {
        sleep(POLL_INTERVAL);
    }
}

/// Returns true if `stream` is either end of a pipe that contains data.
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
