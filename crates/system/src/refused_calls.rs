//! Finds which system call a filter refuses, since the error of the kernel does not say it.

use std::fs::read_link;
use std::io;
use std::os::fd::OwnedFd;

use rustix::event::{EventfdFlags, epoll, eventfd};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::{Errno, fcntl_getfd, ioctl_fionread};
use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, recv, socketpair};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::dumpable_behavior;

/// Returns the remedy for an operation that the kernel has refused with EPERM, as a filter of
/// system calls does: names the calls that it refuses now. `untried` is the call to name if none of
/// those that can be tried without a consequence is refused.
pub fn remedy(untried: &str) -> String {
    let refused = refused_calls();
    let calls = if refused.is_empty() {
        untried.to_owned()
    } else {
        refused.join(" and ")
    };
    format!(
        "a sandbox or container refuses it: permit {calls} in its filter of system calls, or update its runtime"
    )
}

/// Tries to receive from a socket. Where that is refused, the start of a process by
/// [`std::process::Command`] would wait for its end.
///
/// # Errors
/// When the kernel refuses it.
pub fn try_to_receive() -> io::Result<()> {
    match receive(&pair()?.0) {
        // There is nothing to receive.
        Ok(_) | Err(Errno::AGAIN) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Returns the calls that the kernel refuses to this process with EPERM.
fn refused_calls() -> Vec<&'static str> {
    let mut refused = Vec::new();
    let mut note = |call, error: Option<Errno>| {
        if error == Some(Errno::PERM) {
            refused.push(call);
        }
    };

    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC);
    let event = eventfd(0, EventfdFlags::CLOEXEC);
    let pipe = pipe_with(PipeFlags::CLOEXEC);
    let pair = pair();
    note("epoll_create1", epoll.as_ref().err().copied());
    note("eventfd2", event.as_ref().err().copied());
    note("pipe2", pipe.as_ref().err().copied());
    note("socketpair", pair.as_ref().err().copied());
    let memfd = memfd_create("rushmem", MemfdFlags::CLOEXEC);
    note("memfd_create", memfd.err());

    if let (Ok(epoll), Ok(event)) = (&epoll, &event) {
        let data = epoll::EventData::new_u64(0);
        let added = epoll::add(epoll, event, data, epoll::EventFlags::IN);
        note("epoll_ctl", added.err());
    }
    if let Ok((reader, _)) = &pipe {
        note("fcntl", fcntl_getfd(reader).err());
        note("ioctl", ioctl_fionread(reader).err());
    }
    if let Ok((socket, _)) = &pair {
        note("recvfrom", receive(socket).err());
    }
    note("prctl", dumpable_behavior().err());
    let link = read_link("/proc/self/exe").err();
    note(
        "readlink",
        link.and_then(|error| Errno::from_io_error(&error)),
    );
    refused
}

fn pair() -> Result<(OwnedFd, OwnedFd), Errno> {
    socketpair(
        AddressFamily::UNIX,
        SocketType::STREAM,
        SocketFlags::CLOEXEC,
        None,
    )
}

fn receive(socket: &OwnedFd) -> Result<usize, Errno> {
    let mut byte = [0];
    recv(socket, &mut byte, RecvFlags::DONTWAIT).map(|(received, _)| received)
}
