//! The descriptors that this process has inherited from its launcher, as named by environment
//! variables. Those of `oshrun` are taken once, and not passed on to children.
//!
//! No other file of the crate changes the environment or converts numbers to descriptors.
#![allow(unsafe_code)]

use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;

use rushmem_system::host::kernel_release;
use rustix::fs::FileType;
use rustix::io::FdFlags;

use crate::env;
use crate::error::Error;

/// The command of fcntl that selects the signal for events of a descriptor, which the crate libc
/// does not define for Linux.
const F_SETSIG: libc::c_int = 10;

/// The descriptors of a PE that `oshrun` started.
pub(crate) struct Inherited {
    /// The connection to `oshrun`.
    pub(crate) socket: UnixStream,
    /// The node's memory.
    pub(crate) memory: OwnedFd,
}

impl Inherited {
    /// Takes the descriptors and removes their variables, so that programs started from now on are
    /// jobs of their own. Also requests that the kernel kill this process when `oshrun` ends.
    /// Returns `None` if `oshrun` did not start this process.
    ///
    /// # Errors
    /// If a variable does not name the expected kind of descriptor. Nothing is taken then.
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

        kill_at_end_of(own(liveness));
        Ok(Some(Inherited {
            socket: own(socket).into(),
            memory: own(memory),
        }))
    }
}

/// Returns the descriptor that a variable names, if it is open and `check` accepts it. Sets its
/// close-on-exec flag.
fn numbered(
    name: &'static str,
    wanted: &'static str,
    check: fn(BorrowedFd<'_>) -> bool,
) -> Result<RawFd, Error> {
    let value = std::env::var(name).unwrap_or_default();
    let refuse = || Error::Descriptor {
        name,
        value: value.clone(),
        wanted,
    };

    let number: RawFd = value
        .parse()
        .ok()
        .filter(|&number| number >= 0)
        .ok_or_else(refuse)?;

    // SAFETY: the number is not -1. If the descriptor is not open, the calls below only fail with
    // EBADF.
    let fd = unsafe { BorrowedFd::borrow_raw(number) };
    let is_open = rustix::io::fcntl_setfd(fd, FdFlags::CLOEXEC).is_ok();
    if is_open && check(fd) {
        Ok(number)
    } else {
        Err(refuse())
    }
}

/// Returns the memfd that all PEs of this node inherited, and the index of this PE among them,
/// without taking it: for use while the library is loaded, before the PE joins its job. Returns
/// `None` afterwards, and if `oshrun` did not start this process.
pub fn node_memory() -> Option<(BorrowedFd<'static>, u32)> {
    // Once the PE has taken the descriptors, this variable is gone.
    std::env::var_os(env::SOCKET)?;

    let number = |name| std::env::var(name).ok()?.parse::<u32>().ok();
    let memory = RawFd::try_from(number(env::MEMORY)?).ok()?;
    // SAFETY: the number is not -1. The check fails if the descriptor is not open; otherwise it
    // stays open until the PE takes it.
    let memory = unsafe { BorrowedFd::borrow_raw(memory) };
    if !is_memfd(memory) {
        return None;
    }
    Some((memory, number(env::LOCAL_ID)?))
}

/// Returns true if this is the descriptor of a connected socket of any kind.
pub(crate) fn is_socket(number: RawFd) -> bool {
    if number < 0 {
        return false;
    }
    // SAFETY: the number is not -1. If the descriptor is not open, the call below only fails with
    // EBADF.
    let fd = unsafe { BorrowedFd::borrow_raw(number) };
    rustix::net::getpeername(fd).is_ok()
}

/// Duplicates the descriptor of a socket that the program's MPI uses too, so that each closes its
/// own. Sets the close-on-exec flag of the original: programs that this process starts are not
/// members of the job.
pub(crate) fn shared_socket(number: RawFd, name: &'static str) -> Result<OwnedFd, Error> {
    let refuse = || Error::Descriptor {
        name,
        value: number.to_string(),
        wanted: "a connected socket",
    };
    if !is_socket(number) {
        return Err(refuse());
    }

    // SAFETY: the check above has found it open.
    let fd = unsafe { BorrowedFd::borrow_raw(number) };
    // If this fails, so does the next call, which reports it.
    let _ = rustix::io::fcntl_setfd(fd, FdFlags::CLOEXEC);
    rustix::io::fcntl_dupfd_cloexec(fd, 0).map_err(|_| refuse())
}

fn own(number: RawFd) -> OwnedFd {
    // SAFETY: `numbered` has found it open and of the kind that the launcher created for this
    // process alone. Nothing else in the process owns it, and it is taken once, since the variable
    // that named it is removed.
    unsafe { OwnedFd::from_raw_fd(number) }
}

/// Makes the kernel, from version 5.6 on, kill this process as soon as the pipe has no writer. That
/// needs neither a thread nor a signal handler.
fn kill_at_end_of(pipe: OwnedFd) {
    let set = |command, argument: libc::c_int| {
        // SAFETY: the descriptor is open, and these commands take a number.
        unsafe { libc::fcntl(pipe.as_raw_fd(), command, argument) }
    };
    let own = std::process::id() as libc::c_int;

    // The receiver and the signal are set before signals are requested: a signal without a receiver
    // would be lost. If the kernel refuses one of these calls, as in a sandbox, only the launcher
    // ends PEs.
    if reports_last_writers(&kernel_release())
        && set(libc::F_SETOWN, own) == 0
        && set(F_SETSIG, libc::SIGKILL) == 0
    {
        set(libc::F_SETFL, libc::O_ASYNC);
    }

    // The signal comes only while the descriptor is open, so it stays open for the whole life of
    // the process.
    std::mem::forget(pipe);
}

/// Returns true if a kernel of this release sends the signal only when the last writer of a pipe is
/// closed. Before 5.6, kernels send it whenever any process closes any end, such as a PE that
/// exits.
fn reports_last_writers(release: &str) -> bool {
    let mut numbers = release
        .split(|letter: char| !letter.is_ascii_digit())
        .map_while(|digits| digits.parse::<u32>().ok());
    match (numbers.next(), numbers.next()) {
        (Some(major), Some(minor)) => (major, minor) >= (5, 6),
        _ => false,
    }
}

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
        for release in [
            "5.6.0",
            "5.14.0-70.el9.x86_64",
            "6.1.0-18-amd64",
            "10.0",
            "5.6-rc4",
        ] {
            assert!(reports_last_writers(release), "{release}");
        }
        for release in [
            "4.18.0-513.el8",
            "5.4.0-150-generic",
            "5.5.19",
            "4.4.0",
            "5",
            "",
            "x",
        ] {
            assert!(!reports_last_writers(release), "{release}");
        }
    }
}
