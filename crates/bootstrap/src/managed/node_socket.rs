//! The listening socket of a PE, by which the other PEs of its node find it.
//!
//! Its name is in the kernel's abstract namespace, which belongs to the machine and the network
//! namespace: nothing is left behind, and a descriptor can be passed to every process that can
//! connect. Every process on the machine can list the names and connect. Therefore no call here
//! waits for a queue that others may have filled for more than a bounded time, and a connection of
//! another user is closed before anything is read from it.

use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_timeout, socket_peercred};
use rustix::net::{AddressFamily, SocketFlags, SocketType};

use super::node_key::NodeKey;
use super::time_left::TimeLeft;
use crate::error::Error;

/// Connections that wait to be accepted; others wait behind them.
pub(super) const BACKLOG: i32 = 128;

/// A PE's listening socket.
#[derive(Debug)]
pub(super) struct NodeSocket {
    socket: OwnedFd,
    key: NodeKey,
    pe: u32,
}

impl NodeSocket {
    /// Listens as PE `pe`. Every PE of the job must do so before one looks for another.
    pub(super) fn listen(key: NodeKey, pe: u32) -> Result<NodeSocket, Error> {
        let listen = || -> Result<OwnedFd, Errno> {
            let socket = socket(SocketFlags::NONBLOCK)?;
            rustix::net::bind(&socket, &key.name(pe)?)?;
            rustix::net::listen(&socket, BACKLOG)?;
            Ok(socket)
        };
        let socket = listen().map_err(|cause| Error::Listening { pe, cause: cause.into() })?;
        Ok(NodeSocket { socket, key, pe })
    }

    /// This PE.
    pub(super) fn pe(&self) -> u32 {
        self.pe
    }

    pub(super) fn key(&self) -> &NodeKey {
        &self.key
    }

    /// Whether PE `pe` listens on this node. It never waits, and PE `pe` has nothing to do for it.
    pub(super) fn is_there(&self, pe: u32) -> io::Result<bool> {
        let socket = socket(SocketFlags::NONBLOCK)?;
        match rustix::net::connect(&socket, &self.key.name(pe)?) {
            Ok(()) => Ok(is_of_this_user(&socket)),
            // Its queue is full, so there is one.
            Err(Errno::AGAIN) => Ok(true),
            Err(Errno::CONNREFUSED) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// A connection to PE `pe`; `None` if it does not listen on this node.
    ///
    /// # Errors
    /// [`ErrorKind::TimedOut`] when its queue stays full, and those of connect.
    pub(super) fn connect(&self, pe: u32, limit: &mut TimeLeft) -> io::Result<Option<UnixStream>> {
        let socket = socket(SocketFlags::empty())?;
        let name = self.key.name(pe)?;
        loop {
            // The kernel wakes those that wait for room in turn, which trying again and again would
            // lose.
            let connect = |wait: Duration| {
                set_socket_timeout(&socket, Timeout::Send, Some(wait))?;
                rustix::net::connect(&socket, &name)
            };
            match limit.spend(connect).ok_or(ErrorKind::TimedOut)? {
                Ok(()) => return Ok(is_of_this_user(&socket).then(|| socket.into())),
                Err(Errno::CONNREFUSED) => return Ok(None),
                Err(Errno::AGAIN | Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// The next connection in the queue; `None` when it is empty, `Some(None)` when its other end
    /// was another user's.
    pub(super) fn accept(&self) -> Option<io::Result<Option<UnixStream>>> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        match rustix::net::accept_with(&self.socket, flags) {
            Ok(socket) => Some(Ok(is_of_this_user(&socket).then(|| socket.into()))),
            Err(Errno::AGAIN) => None,
            Err(Errno::INTR | Errno::CONNABORTED) => Some(Ok(None)),
            Err(error) => Some(Err(error.into())),
        }
    }
}

impl AsFd for NodeSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

fn socket(flags: SocketFlags) -> Result<OwnedFd, Errno> {
    let flags = flags | SocketFlags::CLOEXEC;
    rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)
}

/// Whether the process at the other end is one of this user's: the kernel says who called connect
/// or listen.
fn is_of_this_user(socket: &impl AsFd) -> bool {
    socket_peercred(socket).is_ok_and(|other| other.uid == rustix::process::geteuid())
}
