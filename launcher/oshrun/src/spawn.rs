//! Starts the process of a PE or of a launch agent, with its descriptors, limits and process group.
//! Errors that this host can detect are found before the first PE starts ([`prepare`]).
#![allow(unsafe_code)]

pub mod limits;
pub mod placement;
pub mod program;

use std::ffi::{OsStr, OsString};
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use rushmem_bootstrap::env;
use rustix::io::FdFlags;
use rustix::process::{Pid, Resource, Rlimit, Signal};

use self::limits::{DescriptorUsers, INHERITED_FROM};
use self::placement::{Placement, Placements};
use self::program::Debugged;
use crate::daemons::connection::JobSpec;
use crate::ends::EndMechanisms;
use crate::ends::guard::{self, GuardProcess, pid_of};
use crate::ends::mark;
use crate::errors::{StartFailure, cannot, reason};
use crate::output::Files;

/// The variable with the directories that the loader searches for libraries.
const LIBRARY_PATH: &str = "LD_LIBRARY_PATH";

/// The preparations for the PEs of this host, which all of them share.
#[derive(Debug)]
pub struct PreparedStart {
    /// The file to run.
    pub file: PathBuf,
    /// The program, as the user wrote it.
    pub program: OsString,
    pub arguments: Vec<OsString>,
    pub variables: Vec<(OsString, OsString)>,
    /// The files of `--output-files`; `None` if PEs use the streams of oshrun.
    pub files: Option<Files>,
    /// The debugger of some PEs.
    pub debugger: Option<Debugger>,
    /// The PEs of this host.
    pub pes: Range<u32>,
    /// The shared memory of the node.
    pub memory: OwnedFd,
    /// The placement of each PE of the node.
    pub placements: Placements,
}

/// The PEs that run under a debugger.
#[derive(Debug)]
pub struct Debugger {
    pub debugged: Debugged,
    /// True if there is a display for its windows.
    pub has_display: bool,
}

/// A started PE.
#[derive(Debug)]
pub struct StartedPe {
    /// The process, which leads a process group of its own.
    pub pid: Pid,
    /// The connection to oshrun.
    pub socket: UnixStream,
    /// Standard output and standard error.
    pub streams: [OwnedFd; 2],
}

impl PreparedStart {
    /// Starts a PE, and waits until it has executed the program.
    pub fn start(
        &self,
        pe: u32,
        stdin: Stdio,
        end_mechanisms: EndMechanisms<'_>,
    ) -> io::Result<StartedPe> {
        let (socket, theirs) = UnixStream::pair()?;
        let theirs = rustix::io::fcntl_dupfd_cloexec(&theirs, INHERITED_FROM)?;
        let liveness = end_mechanisms.liveness.for_pe()?;
        let (stdout, out) = io::pipe()?;
        let (stderr, err) = io::pipe()?;

        let local = pe - self.pes.start;
        let placement = self.placements.placement(local);
        let mut command = self.command(pe);
        // Variables that are set later replace earlier ones of the same name.
        command.envs(self.variables.iter().cloned());
        command.envs(placement.variables.iter().cloned());
        command.env(env::SOCKET, theirs.as_raw_fd().to_string());
        command.env(env::MEMORY, self.memory.as_raw_fd().to_string());
        command.env(env::LIVENESS, liveness.as_raw_fd().to_string());
        command.env(env::LOCAL_ID, local.to_string());
        if !placement.variables.is_empty() {
            let names = placement.variables.iter().map(|(name, _)| name.as_os_str());
            let names: Vec<&OsStr> = names.collect();
            command.env(env::SET_BY_OSHRUN, names.join(OsStr::new(" ")));
        }
        command.env(mark::VARIABLE, end_mechanisms.mark.value());

        command
            .stdin(stdin)
            .stdout(out)
            .stderr(err)
            .process_group(0);

        let inherited = [raw(&theirs), raw(&self.memory), raw(&liveness)];
        let guard = raw(end_mechanisms.guard.pipe());
        let limit = limits::inherited_descriptors();
        // SAFETY: the closure only makes system calls, and neither allocates nor locks, as required
        // between fork and exec.
        unsafe { command.pre_exec(move || before_exec(guard, inherited, limit, &placement)) };
        let child = command.spawn()?;

        Ok(StartedPe {
            pid: pid_of(child.id()),
            socket,
            streams: [stdout.into(), stderr.into()],
        })
    }

    /// Returns the command of a PE: the program, or a debugger that runs it.
    pub fn command(&self, pe: u32) -> Command {
        if let Some(debugger) = &self.debugger
            && let Some(words) =
                debugger
                    .debugged
                    .command(pe, debugger.has_display, &self.file, &self.arguments)
            && let [program, arguments @ ..] = &words[..]
        {
            let mut command = Command::new(program);
            command.args(arguments);
            return command;
        }

        let mut command = Command::new(&self.file);
        command.arg0(&self.program).args(&self.arguments);
        command
    }
}

/// Prepares the start of the PEs of this host, and of `n_daemons` daemons on others.
pub fn prepare(
    spec: &JobSpec,
    pes: Range<u32>,
    n_daemons: u32,
) -> Result<PreparedStart, StartFailure> {
    // PEs get the variables of oshrun, overridden by those that are forwarded or exported.
    let mut variables = [&spec.forwarded[..], &spec.exported].concat();
    let variable = |name: &str| match variables.iter().rfind(|(set, _)| set == name) {
        Some((_, value)) => Some(value.clone()),
        None => std::env::var_os(name),
    };

    let path = variable("PATH");
    let file = program::find(&spec.program, path.as_deref())?;
    program::check_library(&file)?;

    let n_pes = pes.len() as u32;
    limits::check_capacity(n_pes)?;
    let users = DescriptorUsers {
        n_pes,
        n_daemons,
        has_files: spec.output_files.is_some(),
    };
    users.check()?;

    let oshrun = std::env::current_exe().map_err(|error| cannot("find its own file", &error))?;
    let library_path = program::library_path(&oshrun, variable(LIBRARY_PATH).as_deref());

    let debugger = match &spec.debugged {
        Some(debugged) => {
            program::find(OsStr::new("gdb"), path.as_deref())?;
            let display = variable("DISPLAY");
            Some(Debugger {
                debugged: debugged.clone(),
                has_display: program::has_display(display.as_deref(), path.as_deref()),
            })
        }
        None => None,
    };

    let placements = placement::place(pes.clone(), spec.placement, &|name| {
        variable(name).is_some()
    })?;
    if let Some(path) = library_path {
        variables.push((LIBRARY_PATH.into(), path));
    }

    // The remaining steps have effects, so they follow all checks.
    if spec.no_aslr {
        disable_aslr()?;
    }
    let files = match &spec.output_files {
        Some(dir) => Some(Files::create(dir, pes.clone())?),
        None => None,
    };
    let memory =
        node_memory().map_err(|error| cannot("make the shared memory of the job", &error))?;

    Ok(PreparedStart {
        file,
        program: spec.program.clone(),
        arguments: spec.arguments.clone(),
        variables,
        files,
        debugger,
        pes,
        memory,
        placements,
    })
}

/// Creates the shared memory of the node, whose size PEs set. It has no name, so that it cannot
/// remain after the job.
fn node_memory() -> io::Result<OwnedFd> {
    use rustix::fs::MemfdFlags;
    let memory =
        rustix::fs::memfd_create("rushmem", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
    Ok(rustix::io::fcntl_dupfd_cloexec(&memory, INHERITED_FROM)?)
}

/// Disables address space layout randomization (ASLR) for the programs that this process starts
/// from now on.
fn disable_aslr() -> Result<(), StartFailure> {
    // The argument with which personality(2) changes nothing.
    const QUERY: libc::c_ulong = 0xffff_ffff;
    // SAFETY: the call only returns a value.
    let now = unsafe { libc::personality(QUERY) };
    let wanted = now as libc::c_ulong | libc::ADDR_NO_RANDOMIZE as libc::c_ulong;
    // SAFETY: the added flag takes effect only in execve.
    if now != -1 && unsafe { libc::personality(wanted) } != -1 {
        return Ok(());
    }

    Err(StartFailure::general(format!(
        "--no-aslr is refused by the kernel, as in some containers ({}); start the job without it",
        reason(&io::Error::last_os_error())
    )))
}

/// Starts the launch agent of a daemon, in a process group of its own. `command` has its standard
/// streams.
pub fn start_agent(mut command: Command, guard: &GuardProcess) -> io::Result<Pid> {
    command.process_group(0);
    let guard = raw(guard.pipe());
    let limit = limits::inherited_descriptors();
    // SAFETY: the closure only makes system calls, and neither allocates nor locks, as required
    // between fork and exec.
    unsafe { command.pre_exec(move || before_agent_exec(guard, limit)) };
    Ok(pid_of(command.spawn()?.id()))
}

fn raw(fd: &impl AsFd) -> i32 {
    fd.as_fd().as_raw_fd()
}

/// Prepares a launch agent between fork and exec, so this function may only make system calls.
fn before_agent_exec(guard: i32, limit: Option<Rlimit>) -> io::Result<()> {
    let pid = rustix::process::getpid().as_raw_nonzero().get();
    rustix::io::write(borrow(guard), &(pid | guard::AGENT_FLAG).to_ne_bytes())?;
    if let Some(limit) = limit {
        rustix::process::setrlimit(Resource::Nofile, limit)?;
    }
    Ok(())
}

/// Prepares a PE between fork and exec, so this function may only make system calls.
fn before_exec(
    guard: i32,
    inherited: [i32; 3],
    limit: Option<Rlimit>,
    placement: &Placement,
) -> io::Result<()> {
    // The first step registers the process, so that the guard knows every one that runs a program.
    let pid = rustix::process::getpid()
        .as_raw_nonzero()
        .get()
        .to_ne_bytes();
    rustix::io::write(borrow(guard), &pid)?;

    // The kernel ends the PE with oshrun even if the guard is killed. It sends the signal when the
    // thread that forked exits: the main thread, which lives as long as oshrun.
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;

    // oshrun has opened these with the close-on-exec flag, so that no other process that it starts
    // gets them.
    for fd in inherited {
        rustix::io::fcntl_setfd(borrow(fd), FdFlags::empty())?;
    }
    if let Some(limit) = limit {
        rustix::process::setrlimit(Resource::Nofile, limit)?;
    }
    if let Some(cpus) = &placement.cpus {
        let bound = rustix::thread::sched_setaffinity(None, cpus);
        // A sandbox may refuse to bind processes; for the default binding, this is not an error.
        if placement.is_required {
            bound?;
        }
    }
    Ok(())
}

fn borrow<'a>(fd: i32) -> BorrowedFd<'a> {
    // SAFETY: `fd` is the number of a descriptor that oshrun keeps open while it starts the child.
    // The child has a copy, which stays open until exec.
    unsafe { BorrowedFd::borrow_raw(fd) }
}
