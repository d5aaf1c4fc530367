//! The listeners of a meeting, and the descriptors of the connections that they accept.
//!
//! A meeting needs a descriptor for each PE, and the usual soft limit of 1024 is below many a job.
//! The program keeps that limit and the low numbers: a program that calls select(2) must not get a
//! number of 1024 or more, and what it starts inherits the limit. So the soft limit is raised only
//! for the moment in which a connection is accepted, and connections for which the limit leaves
//! little room get a number above it. The kernel checks the limit only when it gives a number.

use std::io;
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::sync::{Arc, Mutex, MutexGuard};

use rushmem_system::limits::getrlimit;
use rushmem_system::lock::lock;
use rustix::io::Errno;
use rustix::net::Shutdown;
use rustix::process::{Resource, Rlimit, setrlimit};

/// The listeners, until the meeting is over.
#[derive(Clone, Debug)]
pub(super) struct Listeners(Arc<Mutex<Vec<TcpListener>>>);

impl Listeners {
    /// Takes these sockets, which no longer block.
    pub(super) fn new(sockets: Vec<TcpListener>) -> io::Result<Listeners> {
        for socket in &sockets {
            socket.set_nonblocking(true)?;
        }
        Ok(Listeners(Arc::new(Mutex::new(sockets))))
    }

    /// Locks the listeners and returns them. There are none once they are closed.
    pub(super) fn locked(&self) -> MutexGuard<'_, Vec<TcpListener>> {
        lock(&self.0)
    }

    /// Refuses connections from now on, also those that wait. Frees the addresses, although forked
    /// children may have copies of the descriptors.
    pub(super) fn close(&self) {
        let mut sockets = lock(&self.0);
        for socket in sockets.drain(..) {
            // If this fails, a process that connects gets no answer until the children have ended.
            let _ = rustix::net::shutdown(socket, Shutdown::Both);
        }
    }

    /// Closes the copies of the listeners in a forked child. Those of the parent still listen, but
    /// without these copies, the kernel refuses connections when the parent ends.
    pub(super) fn forget(&self) {
        // If a thread of the parent held the lock at the time of the fork, nobody releases it in
        // the child, which then keeps its copies.
        if let Ok(mut sockets) = self.0.try_lock() {
            sockets.clear();
        }
    }
}

/// Locked while the soft limit is raised.
static RAISED: Mutex<()> = Mutex::new(());

/// Accepts a connection of a meeting.
///
/// # Errors
/// Those of accept. Without descriptors, the hard limit is reached.
pub(super) fn accept(listener: &TcpListener) -> io::Result<TcpStream> {
    let soft = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    match listener.accept() {
        Ok((stream, _)) if leaves_room(&stream, soft) => Ok(stream),
        Ok((stream, _)) => Ok(while_raised(|_| moved_above(stream, soft))),
        Err(error) if error.raw_os_error() == Some(Errno::MFILE.raw_os_error()) => {
            while_raised(|is_raised| {
                if !is_raised {
                    return Err(error);
                }
                let (stream, _) = listener.accept()?;
                Ok(moved_above(stream, soft))
            })
        }
        Err(error) => Err(error),
    }
}

/// Returns true if the number of a descriptor is in the lower half of those below the soft limit.
/// The upper half is left to the program.
fn leaves_room(stream: &TcpStream, soft: u64) -> bool {
    (stream.as_raw_fd().cast_unsigned() as u64) < soft / 2
}

/// Returns the connection with a number above the soft limit, or as it is if there is none.
fn moved_above(stream: TcpStream, soft: u64) -> TcpStream {
    let Ok(above) = soft.try_into() else {
        return stream;
    };

    match rustix::io::fcntl_dupfd_cloexec(&stream, above) {
        Ok(moved) => TcpStream::from(moved),
        Err(_) => stream,
    }
}

/// Calls `work` while the soft limit is as high as the hard one, and tells it whether that is
/// higher than before. A process that another thread starts meanwhile inherits it.
fn while_raised<T>(work: impl FnOnce(bool) -> T) -> T {
    let _raised = lock(&RAISED);
    let usual = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: usual.maximum,
        ..usual
    };

    let is_raised = usual != raised && setrlimit(Resource::Nofile, raised).is_ok();
    let result = work(is_raised);

    // Another thread may have chosen another limit meanwhile, which stays.
    if is_raised && getrlimit(Resource::Nofile) == raised {
        // This cannot fail: the kernel refuses no lower limit.
        let _ = setrlimit(Resource::Nofile, usual);
    }
    result
}

/// Returns the message for a process that can accept no further connection of a job with `n_pes`
/// PEs.
pub(super) fn shortage(error: &io::Error, n_pes: u32) -> String {
    let hard = getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX);
    match Errno::from_io_error(error) {
        Some(Errno::MFILE) => format!(
            "the process that serves the meeting of the job may have {hard} files open, but needs one for each of the \
             {n_pes} PEs and some of its own; raise its hard limit (ulimit -Hn)"
        ),
        Some(Errno::NFILE) => {
            "the machine of the process that serves the meeting of the job has no file descriptor \
             left; raise the sysctl fs.file-max"
                .to_owned()
        }
        _ => format!(
            "the process that serves the meeting of the job can accept no connection ({error})"
        ),
    }
}
