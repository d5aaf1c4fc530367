//! Lets the process manager read what this process has printed before it is requested to end the
//! job: Hydra's proxies end without reading what is left in their pipes, and the message that says
//! why would be lost.

use std::os::fd::BorrowedFd;
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::fs::{FileType, fstat};
use rustix::io::ioctl_fionread;

/// The time for which a reader that has stopped reading may delay the end of the job.
const READ_LIMIT: Duration = Duration::from_secs(1);

/// Time between two polls.
const POLL_INTERVAL: Duration = Duration::from_millis(1);

/// Returns when nothing is left to read in the pipes that this process prints to, or after
/// [`READ_LIMIT`].
pub(super) fn wait_until_read() {
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
