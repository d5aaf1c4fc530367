//! Sends descriptors to another process of the node, with the bytes that go with them.

use std::io::{self, ErrorKind, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::thread::sleep;
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, sendmsg,
};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::time_left::TimeLeft;

/// Pause before a step is repeated that another process has interrupted.
const PAUSE: Duration = Duration::from_millis(1);

/// Maximum number of descriptors in one message; the kernel accepts 253.
const AT_ONCE: usize = 128;

/// Descriptors besides those for the PEs of the node: of the program and of the process manager.
const OTHER_DESCRIPTORS: u64 = 256;

/// Raises the soft limit of descriptors to `n` and those of other uses, as far as the hard limit
/// allows. If that is too low, the call that is refused says so.
pub(super) fn make_room(n: usize) {
    let needed = n as u64 + OTHER_DESCRIPTORS;
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_some_and(|soft| soft < needed) {
        let current = Some(limit.maximum.map_or(needed, |hard| hard.min(needed)));
        // Below the hard limit nothing refuses it.
        let _ = setrlimit(Resource::Nofile, Rlimit { current, ..limit });
    }
}

/// Sends `bytes` with `fds` in one message.
///
/// # Errors
/// [`ErrorKind::TimedOut`] when `limit` is over, and those of sendmsg.
pub(super) fn send(
    socket: impl AsFd,
    bytes: &[u8],
    fds: &[BorrowedFd<'_>],
    limit: &mut TimeLeft,
) -> io::Result<()> {
    loop {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(AT_ONCE))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        if !fds.is_empty() {
            ancillary.push(SendAncillaryMessage::ScmRights(fds));
        }
        let send =
            |_| sendmsg(&socket, &[IoSlice::new(bytes)], &mut ancillary, SendFlags::NOSIGNAL);
        match limit.spend(send).ok_or(ErrorKind::TimedOut)? {
            Ok(_) => return Ok(()),
            // The kernel limits how many descriptors of a user are in flight at once.
            Err(Errno::TOOMANYREFS) => limit.spend(|_| sleep(PAUSE)).ok_or(ErrorKind::TimedOut)?,
            // A socket with a time limit whose receiver has no room yet.
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Receives one message of `bytes.len()` bytes and the descriptors that this process could open:
/// the kernel drops those for which there is no room.
pub(super) fn receive(socket: impl AsFd, bytes: &mut [u8]) -> io::Result<Vec<OwnedFd>> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(AT_ONCE))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::WAITALL | RecvFlags::CMSG_CLOEXEC;
    let received = rustix::io::retry_on_intr(|| {
        rustix::net::recvmsg(&socket, &mut [IoSliceMut::new(bytes)], &mut ancillary, flags)
    })?;
    if received.bytes != bytes.len() {
        return Err(ErrorKind::UnexpectedEof.into());
    }
    let fds = ancillary.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(fds) => Some(fds),
        _ => None,
    });
    Ok(fds.flatten().collect())
}

/// Sends a list of files, of which some may be missing.
///
/// # Errors
/// As [`send`].
pub(super) fn send_files(
    stream: &UnixStream,
    files: &[Option<BorrowedFd<'_>>],
    limit: &mut TimeLeft,
) -> io::Result<()> {
    for files in files.chunks(AT_ONCE) {
        let present: Vec<u8> = files.iter().map(|file| u8::from(file.is_some())).collect();
        let fds: Vec<BorrowedFd<'_>> = files.iter().copied().flatten().collect();
        send(stream, &present, &fds, limit)?;
    }
    Ok(())
}

/// Receives the list of `n` files that [`send_files`] sends.
pub(super) fn receive_files(stream: &UnixStream, n: usize) -> io::Result<Vec<Option<OwnedFd>>> {
    let mut files = Vec::with_capacity(n);
    while files.len() < n {
        let mut present = vec![0; AT_ONCE.min(n - files.len())];
        let mut fds = receive(stream, &mut present)?.into_iter();
        for present in present {
            let file = (present != 0).then(|| fds.next().ok_or(Errno::MFILE));
            files.push(file.transpose()?);
        }
    }
    Ok(files)
}
