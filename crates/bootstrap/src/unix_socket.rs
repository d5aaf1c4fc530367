//! Unix sockets: the identity of the process at the other end, and messages with descriptors.
#![allow(unsafe_code)]

use std::io::{self, ErrorKind, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::thread::sleep;
use std::time::Duration;

use rushmem_system::limits::getrlimit;
use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, sendmsg,
};
use rustix::process::{Pid, Resource, Rlimit, Uid, setrlimit};

use crate::time_limit::TimeLeft;

/// Pause before a repeated attempt to send, if the kernel has refused a message for a temporary
/// reason, such as descriptors that are in flight. The kernel signals no end of that.
const PAUSE: Duration = Duration::from_millis(1);

/// Maximum number of descriptors in one message; the kernel accepts 253.
const MAX_FDS: usize = 128;

/// Descriptors of the program and of the process manager, besides those for the PEs of the node: an
/// allowance. A program that needs more raises the limit itself, or gets an error when it
/// opens more.
const OTHER_DESCRIPTORS: u64 = 256;

/// The process that has connected a socket, or created the pair to which it belongs.
#[derive(Clone, Copy, Debug)]
pub struct PeerProcess {
    /// The user of the process, in the user namespace of this process.
    pub user: Uid,
    /// The process ID. `None` if the process is in a PID namespace that this process cannot see,
    /// such as that of another container.
    pub pid: Option<Pid>,
}

impl PeerProcess {
    /// Returns the process at the other end of `socket`.
    ///
    /// # Errors
    /// If it is not a Unix socket.
    pub fn of(socket: impl AsFd) -> io::Result<PeerProcess> {
        // rustix's type cannot hold the 0 of a process that this one cannot see.
        let mut peer = libc::ucred {
            pid: 0,
            uid: 0,
            gid: 0,
        };
        let mut nbytes = size_of_val(&peer) as libc::socklen_t;

        // SAFETY: the descriptor is open, and the kernel writes at most `nbytes` bytes of a
        // `ucred`, whose fields may be any numbers.
        let code = unsafe {
            libc::getsockopt(
                socket.as_fd().as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_PEERCRED,
                (&raw mut peer).cast(),
                &mut nbytes,
            )
        };
        if code != 0 {
            return Err(io::Error::last_os_error());
        }

        Ok(PeerProcess {
            user: Uid::from_raw(peer.uid),
            pid: Pid::from_raw(peer.pid),
        })
    }
}

/// Raises the soft limit of descriptors so that `n` more fit, as far as the hard limit allows. If
/// that is too low, a later call fails and reports it.
pub(crate) fn make_room(n: usize) {
    let needed = n as u64 + OTHER_DESCRIPTORS;

    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_some_and(|soft| soft < needed) {
        let current = Some(limit.maximum.map_or(needed, |hard| hard.min(needed)));
        // The kernel refuses this only if the hard limit exceeds that of the system (fs.nr_open). A
        // later call then fails for the lack of descriptors, and says so.
        let _ = setrlimit(Resource::Nofile, Rlimit { current, ..limit });
    }
}

/// Sends `bytes` and `fds` in one message.
///
/// # Errors
/// [`ErrorKind::TimedOut`] when `limit` is over, and those of sendmsg.
pub(crate) fn send(
    socket: impl AsFd,
    bytes: &[u8],
    fds: &[BorrowedFd<'_>],
    limit: &mut TimeLeft,
) -> io::Result<()> {
    loop {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_FDS))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        if !fds.is_empty() {
            ancillary.push(SendAncillaryMessage::ScmRights(fds));
        }

        let sent = limit.spend(|_| {
            sendmsg(
                &socket,
                &[IoSlice::new(bytes)],
                &mut ancillary,
                SendFlags::NOSIGNAL,
            )
        });
        match sent.ok_or(ErrorKind::TimedOut)? {
            // The messages are far smaller than the buffer of a socket, which takes them whole.
            Ok(_) => return Ok(()),
            // The kernel limits the number of descriptors that a user has in flight.
            Err(Errno::TOOMANYREFS) => limit.spend(|_| sleep(PAUSE)).ok_or(ErrorKind::TimedOut)?,
            // The receiver has no room yet, and the time limit of the socket has passed.
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Receives one message of `bytes.len()` bytes. Returns its descriptors, except those that exceed
/// the limit of this process, which the kernel drops.
pub(crate) fn receive(socket: impl AsFd, bytes: &mut [u8]) -> io::Result<Vec<OwnedFd>> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_FDS))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::WAITALL | RecvFlags::CMSG_CLOEXEC;
    let received = rustix::io::retry_on_intr(|| {
        rustix::net::recvmsg(
            &socket,
            &mut [IoSliceMut::new(bytes)],
            &mut ancillary,
            flags,
        )
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

/// Sends a list of files, in which entries may be missing.
///
/// # Errors
/// As [`send`].
pub(crate) fn send_files(
    stream: &UnixStream,
    files: &[Option<BorrowedFd<'_>>],
    limit: &mut TimeLeft,
) -> io::Result<()> {
    for files in files.chunks(MAX_FDS) {
        let present: Vec<u8> = files.iter().map(|file| u8::from(file.is_some())).collect();
        let fds: Vec<BorrowedFd<'_>> = files.iter().copied().flatten().collect();
        send(stream, &present, &fds, limit)?;
    }
    Ok(())
}

/// Receives the list of `n` files that [`send_files`] sends.
pub(crate) fn receive_files(stream: &UnixStream, n: usize) -> io::Result<Vec<Option<OwnedFd>>> {
    let mut files = Vec::with_capacity(n);
    while files.len() < n {
        let mut present = vec![0; MAX_FDS.min(n - files.len())];
        let mut fds = receive(stream, &mut present)?.into_iter();
        for is_present in present {
            let file = if is_present != 0 {
                // The kernel drops descriptors that exceed the limit of this process.
                Some(fds.next().ok_or(Errno::MFILE)?)
            } else {
                None
            };
            files.push(file);
        }
    }
    Ok(files)
}
