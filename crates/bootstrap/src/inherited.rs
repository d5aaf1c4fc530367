//! The descriptors that the launcher passed to this process, as our own variables name them. They
//! are taken once and not passed on to children.
//!
//! This is the only file of the crate that changes the environment or turns numbers into
//! descriptors.
#![allow(unsafe_code)]

use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;

use rustix::fs::FileType;
use rustix::io::FdFlags;

use crate::env;
use crate::error::Error;

/// The descriptors of a PE that `oshrun` started.
pub(crate) struct Inherited {
    /// Leads to `oshrun`.
    pub(crate) socket: UnixStream,
    /// The node's memory.
    pub(crate) memory: OwnedFd,
}

impl Inherited {
    /// Takes the descriptors and removes their variables, so that programs started from now on are
    /// jobs of their own. `None` when `oshrun` did not start this process.
    ///
    /// # Errors
    /// When a variable does not name what it should; then nothing is taken.
    pub(crate) fn take() -> Result<Option<Inherited>, Error> {
        if std::env::var_os(env::SOCKET).is_none() {
            return Ok(None);
        }
        let socket = numbered(env::SOCKET, "a connected unix socket", is_connected_socket)?;
        let memory = numbered(env::MEMORY, "a memfd", is_memfd)?;
        let liveness = numbered(env::LIVENESS, "a pipe", is_pipe)?;
        for name in env::OF_ONE_PE {
            // SAFETY: glibc's unsetenv frees nothing and only shifts entries inside the
            // environment's array, so a thread that reads the environment at this moment may miss a
            // variable but never follows a dangling pointer; writers in Rust are excluded by the
            // standard library's lock.
            unsafe { std::env::remove_var(name) };
        }
        die_with(own(liveness));
        Ok(Some(Inherited { socket: own(socket).into(), memory: own(memory) }))
    }
}

/// Returns the descriptor that the variable names, if it is open and `check` accepts it. It no
/// longer passes to children then.
fn numbered(
    name: &'static str,
    wanted: &'static str,
    check: fn(BorrowedFd<'_>) -> bool,
) -> Result<RawFd, Error> {
    let value = std::env::var(name).unwrap_or_default();
    let refuse = || Error::Descriptor { name, value: value.clone(), wanted };
    let number: RawFd = value.parse().ok().filter(|&number| number >= 0).ok_or_else(refuse)?;
    // SAFETY: the number is not -1. That the descriptor is open is what the calls below find out,
    // by EBADF.
    let fd = unsafe { BorrowedFd::borrow_raw(number) };
    let kept_from_children = rustix::io::fcntl_setfd(fd, FdFlags::CLOEXEC);
    if kept_from_children.is_ok() && check(fd) { Ok(number) } else { Err(refuse()) }
}

/// Returns the memfd that all PEs of this node inherited, and this process's number among them,
/// before the session is opened: when the library is loaded. Nothing is taken. `None` when `oshrun`
/// did not start this process.
pub fn node_memory() -> Option<(BorrowedFd<'static>, u32)> {
    let number = |name| std::env::var(name).ok()?.parse::<u32>().ok();
    std::env::var_os(env::SOCKET)?;
    let memory = RawFd::try_from(number(env::MEMORY)?).ok()?;
    // SAFETY: the number is not -1. That the descriptor is open is what the check finds out; it
    // stays so until the session takes it.
    let memory = unsafe { BorrowedFd::borrow_raw(memory) };
    is_memfd(memory).then_some((memory, number(env::LOCAL_ID)?))
}

/// Returns true if this descriptor is a connected socket, of any kind.
pub(crate) fn is_socket(number: RawFd) -> bool {
    if number < 0 {
        return false;
    }
    // SAFETY: the number is not -1. That the descriptor is open is what the call below finds out,
    // by EBADF.
    let fd = unsafe { BorrowedFd::borrow_raw(number) };
    rustix::net::getpeername(fd).is_ok()
}

/// Returns a socket that the program's MPI uses too, and that neither must close: a descriptor of
/// our own for it. The original no longer passes to programs started later, which are no members of
/// the job.
pub(crate) fn shared_socket(number: RawFd, name: &'static str) -> Result<OwnedFd, Error> {
    let refuse =
        || Error::Descriptor { name, value: number.to_string(), wanted: "a connected socket" };
    if !is_socket(number) {
        return Err(refuse());
    }
    // SAFETY: it was open just now.
    let fd = unsafe { BorrowedFd::borrow_raw(number) };
    // A program between that started others would want it to pass; this one is a PE.
    let _ = rustix::io::fcntl_setfd(fd, FdFlags::CLOEXEC);
    rustix::io::fcntl_dupfd_cloexec(fd, 0).map_err(|_| refuse())
}

fn own(number: RawFd) -> OwnedFd {
    // SAFETY: `numbered` found it open and of the kind the launcher made for this process alone;
    // nothing else in the process knows the number, and the variable that named it is gone, so it
    // is taken once.
    unsafe { OwnedFd::from_raw_fd(number) }
}

/// Makes the kernel kill this process as soon as the pipe has no writer, whatever the process does:
/// no thread waits for it, and no signal is taken from the program. The descriptor stays open as
/// long as the process runs.
fn die_with(pipe: OwnedFd) {
    let set = |command, argument: libc::c_int| {
        // SAFETY: the descriptor is open, and these commands take a number.
        unsafe { libc::fcntl(pipe.as_raw_fd(), command, argument) }
    };
    let own = std::process::id() as libc::c_int;
    let release = rustix::system::uname();
    // If the kernel refuses one of them (a sandbox may), the launcher is alone in ending PEs.
    if reports_last_writers(&release.release().to_string_lossy())
        && set(libc::F_SETOWN, own) == 0
        && set(F_SETSIG, libc::SIGKILL) == 0
    {
        set(libc::F_SETFL, libc::O_ASYNC);
    }
    std::mem::forget(pipe);
}

/// Returns true if a kernel of this release sends the signal for the last writer of a pipe alone.
/// Before
/// 5.6 it does so whenever anybody closes any end, such as a PE that exits.
fn reports_last_writers(release: &str) -> bool {
    let mut numbers = release.split(|byte: char| !byte.is_ascii_digit());
    let mut number = || numbers.next()?.parse::<u32>().ok();
    matches!((number(), number()), (Some(major), Some(minor)) if (major, minor) >= (5, 6))
}

/// Which signal says that something has happened to a descriptor; libc does not name the command
/// for Linux.
const F_SETSIG: libc::c_int = 10;

fn is_pipe(fd: BorrowedFd<'_>) -> bool {
    rustix::fs::fstat(fd).is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Fifo)
}

fn is_connected_socket(fd: BorrowedFd<'_>) -> bool {
    let is_unix = rustix::net::sockopt::socket_domain(fd) == Ok(rustix::net::AddressFamily::UNIX);
    let is_stream = rustix::net::sockopt::socket_type(fd) == Ok(rustix::net::SocketType::STREAM);
    is_unix && is_stream && rustix::net::getpeername(fd).is_ok()
}

fn is_memfd(fd: BorrowedFd<'_>) -> bool {
    let is_file = rustix::fs::fstat(fd)
        .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile);
    is_file && rustix::fs::fcntl_get_seals(fd).is_ok()
}

#[cfg(test)]
mod tests {
    use super::reports_last_writers;

    #[test]
    fn kernels_that_signal_every_close_are_known() {
        for release in ["5.6.0", "5.14.0-70.el9.x86_64", "6.1.0-18-amd64", "10.0", "5.6-rc4"] {
            assert!(reports_last_writers(release), "{release}");
        }
        for release in ["4.18.0-513.el8", "5.4.0-150-generic", "5.5.19", "4.4.0", "5", "", "x"] {
            assert!(!reports_last_writers(release), "{release}");
        }
    }
}
