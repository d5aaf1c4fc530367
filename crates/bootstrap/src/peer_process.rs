//! The process at the other end of a Unix socket, as the kernel states it.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsFd, AsRawFd};

use rustix::process::{Pid, Uid};

/// The process that connected a socket, or that made the pair to which it belongs.
#[derive(Clone, Copy, Debug)]
pub struct PeerProcess {
    /// Its user, as the user namespace of this process numbers it.
    pub user: Uid,
    /// Its number. `None` if it is in a PID namespace that this process does not see, such as that
    /// of another container.
    pub pid: Option<Pid>,
}

impl PeerProcess {
    /// Returns the process at the other end of `socket`.
    ///
    /// # Errors
    /// When it is no Unix socket.
    pub fn of(socket: impl AsFd) -> io::Result<PeerProcess> {
        // Not rustix's type, which cannot hold the 0 that stands for a process out of sight.
        let mut peer = libc::ucred { pid: 0, uid: 0, gid: 0 };
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
        match code {
            0 => Ok(PeerProcess { user: Uid::from_raw(peer.uid), pid: Pid::from_raw(peer.pid) }),
            _ => Err(io::Error::last_os_error()),
        }
    }
}
