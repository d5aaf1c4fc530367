//! Starts the process of one PE, or of one daemon's agent, with exactly the descriptors, limits and process group that
//! it should have.
#![allow(unsafe_code)]

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use rushmem_bootstrap::env;
use rustix::io::FdFlags;
use rustix::process::{Pid, Resource, Rlimit, Signal};

use crate::debugger::Debugged;
use crate::guard::{self, Guard, pid_of};
use crate::limits::INHERITED_FROM;
use crate::liveness::Liveness;
use crate::mark::{self, Mark};
use crate::output::Files;
use crate::placement::{Placement, Placements};

/// What all PEs of a job have in common.
#[derive(Debug)]
pub struct Launch {
    /// The file to run.
    pub file: PathBuf,
    /// The program as the user named it.
    pub program: OsString,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// Variables to set.
    pub variables: Vec<(OsString, OsString)>,
    /// The output files of each PE, if it does not use the streams of oshrun.
    pub files: Option<Files>,
    /// PEs that run under a debugger, and whether it can open windows.
    pub debugged: Option<(Debugged, bool)>,
    /// The first PE of this node.
    pub first_of_node: u32,
    /// The node's memory.
    pub memory: OwnedFd,
    /// The original descriptor limit, if oshrun raised its own.
    pub limit: Option<Rlimit>,
    /// Where each PE of the node goes.
    pub placements: Placements,
}

/// A PE that has been started.
#[derive(Debug)]
pub struct Started {
    /// Its process, and its process group.
    pub pid: Pid,
    /// The connection to the PE.
    pub socket: UnixStream,
    /// Its standard output and standard error.
    pub streams: [OwnedFd; 2],
}

/// The mechanisms that end a PE with the process that starts it.
#[derive(Clone, Copy, Debug)]
pub struct Ties<'a> {
    /// Ends the PE when this process is gone.
    pub guard: &'a Guard,
    /// Lets the kernel do the same.
    pub liveness: &'a Liveness,
    /// Identifies the PE's processes wherever they are.
    pub mark: &'a Mark,
}

/// The node's memory, empty: PEs set its size. It has no name, so it cannot be left behind.
pub fn node_memory() -> io::Result<OwnedFd> {
    use rustix::fs::MemfdFlags;
    let memory =
        rustix::fs::memfd_create("rushmem", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
    Ok(rustix::io::fcntl_dupfd_cloexec(&memory, INHERITED_FROM)?)
}

impl Launch {
    /// Starts PE `pe` and returns when it has become the user's program.
    ///
    /// # Errors
    /// When the program cannot be run, or the process cannot be created.
    pub fn start(&self, pe: u32, stdin: Stdio, ties: Ties<'_>) -> io::Result<Started> {
        let (socket, theirs) = UnixStream::pair()?;
        let theirs = rustix::io::fcntl_dupfd_cloexec(&theirs, INHERITED_FROM)?;
        let liveness = ties.liveness.for_pe()?;
        let (stdout, out) = io::pipe()?;
        let (stderr, err) = io::pipe()?;

        let mut command = self.command(pe);
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        let local = pe - self.first_of_node;
        let place = self.placements.of(local);
        command.envs(place.variables.iter().map(|(name, value)| (name, value)));
        command.env(env::SOCKET, theirs.as_raw_fd().to_string());
        command.env(env::MEMORY, self.memory.as_raw_fd().to_string());
        command.env(env::LIVENESS, liveness.as_raw_fd().to_string());
        command.env(env::LOCAL_ID, local.to_string());
        let set: Vec<&OsStr> = place.variables.iter().map(|(name, _)| name.as_os_str()).collect();
        if !set.is_empty() {
            command.env(env::SET_BY_OSHRUN, set.join(OsStr::new(" ")));
        }
        command.env(mark::VARIABLE, ties.mark.value());
        command.stdin(stdin).stdout(out).stderr(err).process_group(0);
        let inherited = [raw(&theirs), raw(&self.memory), raw(&liveness)];
        let (guard, limit) = (raw(ties.guard.pipe()), self.limit);
        // SAFETY: the closure makes system calls alone, without memory or locks, as a child between fork and exec must.
        unsafe { command.pre_exec(move || before_exec(guard, inherited, limit, &place)) };
        let child = command.spawn()?;
        let streams = [stdout.into(), stderr.into()];
        Ok(Started { pid: pid_of(child.id()), socket, streams })
    }

    /// The program, or a debugger that runs it.
    pub fn command(&self, pe: u32) -> Command {
        let debugger = self.debugged.as_ref().and_then(|(debugged, shows)| {
            debugged.command(pe, *shows, &self.file, &self.arguments)
        });
        match debugger.as_deref() {
            Some([debugger, words @ ..]) => {
                let mut command = Command::new(debugger);
                command.args(words);
                command
            }
            _ => {
                let mut command = Command::new(&self.file);
                command.arg0(&self.program).args(&self.arguments);
                command
            }
        }
    }
}

/// Starts the launch agent of a daemon with these standard streams, and with the node's memory if the daemon is on this
/// node.
///
/// # Errors
/// When the command cannot be run.
pub fn daemon(
    mut command: Command,
    (stdin, stdout, stderr): (OwnedFd, OwnedFd, OwnedFd),
    memory: Option<&OwnedFd>,
    limit: Option<Rlimit>,
    guard: &Guard,
) -> io::Result<Pid> {
    command.stdin(stdin).stdout(stdout).stderr(stderr).process_group(0);
    let (guard, memory) = (raw(guard.pipe()), memory.map(raw));
    let before_exec = move || {
        let pid = rustix::process::getpid().as_raw_nonzero().get();
        rustix::io::write(borrow(guard), &guard::late(pid).to_ne_bytes())?;
        if let Some(memory) = memory {
            rustix::io::fcntl_setfd(borrow(memory), FdFlags::empty())?;
        }
        if let Some(limit) = limit {
            rustix::process::setrlimit(Resource::Nofile, limit)?;
        }
        Ok(())
    };
    // SAFETY: the closure makes system calls alone, without memory or locks, as a child between fork and exec must.
    unsafe { command.pre_exec(before_exec) };
    Ok(pid_of(command.spawn()?.id()))
}

/// The node's memory that this daemon inherited from its parent, which names its number.
///
/// # Errors
/// When there is none.
pub fn inherited_memory(number: i32) -> io::Result<OwnedFd> {
    if number < INHERITED_FROM {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    // The daemon has opened no descriptor above that number itself: an error shows that there is none.
    rustix::fs::fcntl_get_seals(borrow(number))?;
    rustix::io::fcntl_setfd(borrow(number), FdFlags::CLOEXEC)?;
    // SAFETY: it is open, and the parent left it to this process alone, which asks once.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

fn raw(fd: &impl AsFd) -> i32 {
    fd.as_fd().as_raw_fd()
}

/// The child's last steps before it executes the user's program. They are only system calls.
fn before_exec(
    guard: i32,
    inherited: [i32; 3],
    limit: Option<Rlimit>,
    place: &Placement,
) -> io::Result<()> {
    // The guard comes first: from here on no process can be left behind.
    let pid = rustix::process::getpid().as_raw_nonzero().get().to_ne_bytes();
    rustix::io::write(borrow(guard), &pid)?;
    // In addition to the guard, in case that one is killed. The kernel watches the thread that forked, which is oshrun's
    // main thread and lives as long as oshrun.
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    for fd in inherited {
        rustix::io::fcntl_setfd(borrow(fd), FdFlags::empty())?;
    }
    if let Some(limit) = limit {
        rustix::process::setrlimit(Resource::Nofile, limit)?;
    }
    if let Some(cpus) = &place.cpus {
        let bound = rustix::thread::sched_setaffinity(None, cpus);
        // A sandbox may refuse a binding that nobody asked for.
        if place.is_asked {
            bound?;
        }
    }
    Ok(())
}

fn borrow<'a>(fd: i32) -> BorrowedFd<'a> {
    // SAFETY: the number is of a descriptor that oshrun holds open over the fork, so the child has it, too.
    unsafe { BorrowedFd::borrow_raw(fd) }
}
