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
    let calls = match refused.is_empty() {
        true => untried.to_owned(),
        false => refused.join(" and "),
    };
    format!(
        "a sandbox or container refuses it: permit {calls} in its filter of system calls, or update its runtime"
    )
}

/// Returns the calls that the kernel refuses to this process with EPERM.
fn refused_calls() -> Vec<&'static str> {
    let (stream, unnamed) = (SocketType::STREAM, AddressFamily::UNIX);
    let tried = [
        (
            "epoll_create1",
            epoll::create(epoll::CreateFlags::CLOEXEC).err(),
        ),
        ("eventfd2", eventfd(0, EventfdFlags::CLOEXEC).err()),
        (
            "memfd_create",
            memfd_create("rushmem", MemfdFlags::CLOEXEC).err(),
        ),
        ("pipe2", pipe_with(PipeFlags::CLOEXEC).err()),
        (
            "socketpair",
            socketpair(unnamed, stream, SocketFlags::CLOEXEC, None).err(),
        ),
    ];
    let is_refused = |(_, error): &(&str, Option<Errno>)| *error == Some(Errno::PERM);
    tried
        .into_iter()
        .filter(is_refused)
        .map(|(call, _)| call)
        .collect()
}
