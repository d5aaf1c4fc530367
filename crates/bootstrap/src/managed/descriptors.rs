//! Sends descriptors to another process of the node, with the bytes that go with them.

use std::io::{self, ErrorKind, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::thread::sleep;
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags,
};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Pause before a step is repeated that another process has interrupted.
pub(super) const PAUSE: Duration = Duration::from_millis(1);

/// Maximum number of descriptors in one message; the kernel accepts 253.
const AT_ONCE: usize = 128;

/// Descriptors besides those for the PEs of the node: of the program, of the process manager, and
/// of connections that have proved nothing yet.
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

/// Sends `bytes` with `fds` in one message. Does not wait if `flags` say so.
pub(super) fn send(
    stream: &UnixStream,
    bytes: &[u8],
    fds: &[BorrowedFd<'_>],
    flags: SendFlags,
) -> Result<(), Errno> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(AT_ONCE))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !fds.is_empty() {
        ancillary.push(SendAncillaryMessage::ScmRights(fds));
    }
    let flags = flags | SendFlags::NOSIGNAL;
    rustix::net::sendmsg(stream, &[IoSlice::new(bytes)], &mut ancillary, flags).map(drop)
}

/// Receives one message of `bytes.len()` bytes and the descriptors that this process could open:
/// the kernel drops those for which there is no room.
pub(super) fn receive(
    stream: &UnixStream,
    bytes: &mut [u8],
    flags: RecvFlags,
) -> io::Result<Vec<OwnedFd>> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(AT_ONCE))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let flags = flags | RecvFlags::CMSG_CLOEXEC;
    let received = rustix::io::retry_on_intr(|| {
        rustix::net::recvmsg(stream, &mut [IoSliceMut::new(bytes)], &mut ancillary, flags)
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
pub(super) fn send_files(
    stream: &UnixStream,
    files: &[Option<BorrowedFd<'_>>],
) -> Result<(), Errno> {
    for files in files.chunks(AT_ONCE) {
        let present: Vec<u8> = files.iter().map(|file| u8::from(file.is_some())).collect();
        let fds: Vec<BorrowedFd<'_>> = files.iter().copied().flatten().collect();
        loop {
            match send(stream, &present, &fds, SendFlags::empty()) {
                Ok(()) => break,
                // The kernel limits how many descriptors of a user are in flight at once.
                Err(Errno::INTR | Errno::TOOMANYREFS) => sleep(PAUSE),
                Err(error) => return Err(error),
            }
        }
    }
    Ok(())
}

/// Receives the list of `n` files that [`send_files`] sends.
pub(super) fn receive_files(stream: &UnixStream, n: usize) -> io::Result<Vec<Option<OwnedFd>>> {
    let mut files = Vec::with_capacity(n);
    while files.len() < n {
        let mut present = vec![0; AT_ONCE.min(n - files.len())];
        let mut fds = receive(stream, &mut present, RecvFlags::WAITALL)?.into_iter();
        for present in present {
            let file = (present != 0).then(|| fds.next().ok_or(Errno::MFILE));
            files.push(file.transpose()?);
        }
    }
    Ok(files)
}
