//! Finds which system call a filter refuses, since the error of the kernel does not say it.

use rustix::event::{EventfdFlags, epoll, eventfd};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::pipe::{PipeFlags, pipe_with};

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

/// Returns the calls that the kernel refuses to this process with EPERM.
fn refused_calls() -> Vec<&'static str> {
    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).err();
    let eventfd = eventfd(0, EventfdFlags::CLOEXEC).err();
    let memfd = memfd_create("rushmem", MemfdFlags::CLOEXEC).err();
    let pipe = pipe_with(PipeFlags::CLOEXEC).err();
    let pair = socketpair(
        AddressFamily::UNIX,
        SocketType::STREAM,
        SocketFlags::CLOEXEC,
        None,
    )
    .err();

    let mut refused = Vec::new();
    for (call, error) in [
        ("epoll_create1", epoll),
        ("eventfd2", eventfd),
        ("memfd_create", memfd),
        ("pipe2", pipe),
        ("socketpair", pair),
    ] {
        if error == Some(Errno::PERM) {
            refused.push(call);
        }
    }
    refused
}
