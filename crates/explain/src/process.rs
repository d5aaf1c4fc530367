//! The state of a PE's process as the kernel shows it, for explanations of a job that hangs.
//!
//! One read does not tell whether a process computes: one that sleeps most of the time may run at
//! that moment, and one that computes may sleep. Two reads show the CPU time used between them.

use std::collections::HashSet;
use std::os::unix::fs::MetadataExt;
use std::time::Instant;

use crate::snapshot::{OtherThreads, ProcessState};
use crate::status::Status;

/// System calls in which a thread waits for other threads, or a helper thread of a library waits
/// for work. A thread that sleeps in another call continues by itself, and may then write a word
/// for which a PE waits.
const SERVING: &[libc::c_long] = &[
    libc::SYS_futex,
    libc::SYS_ppoll,
    libc::SYS_epoll_pwait,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_poll,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_epoll_wait,
];

/// System calls that create a process or thread.
const CREATING: &[libc::c_long] = &[
    libc::SYS_clone,
    libc::SYS_clone3,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_vfork,
];

/// System calls that return early, with fewer bytes, if a signal or a debugger interrupts them.
const WRITING: &[libc::c_long] = &[
    libc::SYS_write,
    libc::SYS_writev,
    libc::SYS_pwrite64,
    libc::SYS_pwritev,
    libc::SYS_sendto,
    libc::SYS_sendmsg,
    libc::SYS_sendfile,
    libc::SYS_splice,
];

/// The start of the names of the memory that the PEs of a node share, in /proc/PID/maps.
const NODE_MEMORY: &str = "/memfd:rushmem";

/// Maximum number of threads whose CPU time is read. A busy thread beyond them is not seen.
const MAX_THREADS: usize = 64;

/// What /proc shows of a process at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessStat {
    read_at: Instant,
    /// The letter that proc_pid_stat(5) gives: that of the main thread or, once `main` has called
    /// `pthread_exit`, that of another thread.
    state: char,
    /// True if the main thread has ended, but others go on.
    has_no_main_thread: bool,
    /// True if the process waits for a child of `vfork`.
    waits_for_child: bool,
    /// When the process was started. A later process with the same number has another time.
    start: u64,
    /// CPU time of all its threads, in clock ticks.
    ticks: u64,
    /// The threads that do not wait according to the status.
    threads: Vec<ThreadStat>,
}

impl ProcessStat {
    /// Returns true if the main thread has ended, but others go on.
    pub fn has_no_main_thread(&self) -> bool {
        self.has_no_main_thread
    }
}

/// A thread of a process, at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ThreadStat {
    number: u32,
    /// CPU time in clock ticks.
    ticks: u64,
}

/// Returns the PID namespace of this process, by its inode number. `None` where /proc does not show
/// this process by its own number: it is not mounted, or shows another PID namespace, in which a
/// number means another process.
pub fn pid_namespace() -> Option<u64> {
    let own = std::fs::read_link("/proc/self").ok()?;
    if own.to_str()?.parse() != Ok(std::process::id()) {
        return None;
    }
    Some(std::fs::metadata("/proc/self/ns/pid").ok()?.ino())
}

/// Reads the process without its threads, which is enough for its state. `None` if there is none.
pub fn read_stat(pid: u32) -> Option<ProcessStat> {
    let mut process = stat(&pid.to_string())?;
    if process.state == 'Z'
        && let Some(state) = state_of_other_thread(pid)
    {
        process.state = state;
        process.has_no_main_thread = true;
    }
    process.waits_for_child = process.state == 'D' && creates_child(pid);
    Some(process)
}

/// Returns the state of a thread other than the main one that has not ended.
fn state_of_other_thread(pid: u32) -> Option<char> {
    threads(pid)?
        .filter(|number| *number != pid)
        .filter_map(|number| Some(stat(&format!("{pid}/task/{number}"))?.state))
        .find(|state| !matches!(state, 'Z' | 'X'))
}

/// Returns the numbers of the threads of a process, if there is one.
fn threads(pid: u32) -> Option<impl Iterator<Item = u32>> {
    let directory = std::fs::read_dir(format!("/proc/{pid}/task")).ok()?;
    Some(
        directory
            .flatten()
            .filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok()),
    )
}

/// Returns true if the main thread of a process is in a call that creates a process. Such a call
/// lasts only if it is `vfork`, or `posix_spawn`: until the child calls `exec` or exits.
fn creates_child(pid: u32) -> bool {
    let call = system_call(&pid.to_string());
    call.is_some_and(|call| CREATING.contains(&call))
}

/// Returns the name of the program that a process of a PE runs by now, if it has called `exec`. The
/// process then does not map the memory of the node any more.
pub fn other_program(pid: u32) -> Option<String> {
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).ok()?;
    // A process that ends has no mappings.
    if maps.is_empty() || maps.contains(NODE_MEMORY) {
        return None;
    }
    let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
    Some(name.trim_end().to_owned())
}

/// Reads a process or a thread, by its directory in /proc.
fn stat(directory: &str) -> Option<ProcessStat> {
    parse(&std::fs::read_to_string(format!("/proc/{directory}/stat")).ok()?)
}

/// Reads the process, and at most `MAX_THREADS` of its threads: those that wait according to the
/// status are left out. Returns `None` if there is no such process.
///
/// Where hundreds of threads poll, any other thread waits long for a CPU, so this function makes
/// few system calls.
pub fn read(pid: u32, status: Option<&Status>) -> Option<ProcessStat> {
    let mut process = read_stat(pid)?;
    let waiting: HashSet<u32> = status
        .into_iter()
        .flat_map(Status::waiting_threads)
        .collect();

    let others = threads(pid)?
        .filter(|number| !waiting.contains(number))
        .take(MAX_THREADS);
    for number in others {
        // A thread that ends meanwhile is left out.
        if let Some(thread) = stat(&format!("{pid}/task/{number}")) {
            process.threads.push(ThreadStat {
                number,
                ticks: thread.ticks,
            });
        }
    }
    Some(process)
}

/// Parses /proc/PID/stat. The name of the program may contain anything, so the fields after the
/// last parenthesis are used.
fn parse(stat: &str) -> Option<ProcessStat> {
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();

    // proc_pid_stat(5) counts the state, the first of these, as field 3.
    let number = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();

    Some(ProcessStat {
        read_at: Instant::now(),
        state: fields.first()?.chars().next()?,
        has_no_main_thread: false,
        waits_for_child: false,
        start: number(22)?,
        ticks: number(14)? + number(15)?,
        threads: Vec::new(),
    })
}

/// Returns the state of a process that was read twice.
pub fn between(first: Option<&ProcessStat>, second: Option<&ProcessStat>) -> ProcessState {
    let ended = || ProcessState::Ended(None);
    let (Some(first), Some(second)) = (first, second) else {
        return ended();
    };
    // Another process has the number by now.
    if first.start != second.start {
        return ended();
    }

    let ticks = second.ticks.saturating_sub(first.ticks);
    match second.state {
        'Z' | 'X' => ended(),
        'T' => ProcessState::Stopped,
        't' => ProcessState::Traced,
        'D' if second.waits_for_child => ProcessState::WaitsForChild,
        // A process that reads a file is in this state again and again, but not for long.
        'D' if ticks == 0 && first.state == 'D' => ProcessState::WaitsForDisk,
        // A process that sleeps most of the time may be running at one of the reads.
        'R' if first.state == 'R' => runs(ticks, first, second),
        _ if ticks > 0 => runs(ticks, first, second),
        _ => ProcessState::Sleeps,
    }
}

fn runs(ticks: u64, first: &ProcessStat, second: &ProcessStat) -> ProcessState {
    let of_ms = second.read_at.duration_since(first.read_at).as_millis() as u64;
    let cpu_ms = ticks * 1000 / rustix::param::clock_ticks_per_second().max(1);
    ProcessState::Runs { cpu_ms, of_ms }
}

/// Returns the numbers of busy and sleeping threads of a process that was read twice. Threads of
/// the library, and threads that wait according to the status with which it was read, are not
/// counted.
pub fn other_threads(pid: u32, first: &ProcessStat, second: &ProcessStat) -> OtherThreads {
    let mut others = OtherThreads::default();
    for thread in &second.threads {
        let before = first
            .threads
            .iter()
            .find(|before| before.number == thread.number)
            .map_or(0, |before| before.ticks);
        let is_busy = thread.ticks > before;
        let is_sleeping = !is_busy && sleeps_by_itself(pid, thread.number);

        // Asked last: the name needs two more system calls.
        if (is_busy || is_sleeping) && !is_of_library(pid, thread.number) {
            others.busy += u32::from(is_busy);
            others.sleeping += u32::from(is_sleeping);
        }
    }
    others
}

/// Returns true if a thread is in a system call other than those of [`SERVING`], or can run: one
/// that can run but uses no CPU time waits for a CPU. Returns false if the kernel does not tell.
fn sleeps_by_itself(pid: u32, number: u32) -> bool {
    let thread = format!("{pid}/task/{number}");
    match syscall_field(&thread).as_deref() {
        Some("running") => true,
        Some(field) => field.parse().is_ok_and(|call: libc::c_long| {
            // -1 is no call: the thread is stopped, or in a page fault.
            call >= 0 && !SERVING.contains(&call)
        }),
        None => false,
    }
}

/// Returns true if a thread of a process is in a call that writes or sends. A debugger that stops
/// the process ends such a call early, with fewer bytes than the program has passed.
pub fn is_writing(pid: u32) -> bool {
    let mut threads = threads(pid).into_iter().flatten();
    threads.any(|number| {
        let call = system_call(&format!("{pid}/task/{number}"));
        call.is_some_and(|call| WRITING.contains(&call))
    })
}

/// Returns the number of the system call in which a process or thread is, by its directory in
/// /proc; `None` if it is in none, or the kernel does not tell.
fn system_call(directory: &str) -> Option<libc::c_long> {
    let call = syscall_field(directory)?.parse().ok()?;
    (call >= 0).then_some(call)
}

/// Returns the first field of proc_pid_syscall(5): the number of a call, -1 or `running`.
fn syscall_field(directory: &str) -> Option<String> {
    let line = std::fs::read_to_string(format!("/proc/{directory}/syscall")).ok()?;
    Some(line.split_whitespace().next()?.to_owned())
}

/// Returns true if the name of a thread is one that the library or UCX gives to its threads.
/// Threads of libfabric have the name of the program, as those of the program have.
fn is_of_library(pid: u32, number: u32) -> bool {
    let name = |of: &str| std::fs::read_to_string(format!("/proc/{of}/comm")).unwrap_or_default();
    let program = name(&pid.to_string());
    let thread = name(&format!("{pid}/task/{number}"));

    // A program may have such a name itself, which its threads inherit. UCX names its thread async.
    thread != program && (thread.starts_with("rushmem") || thread.trim_end() == "async")
}

#[cfg(test)]
mod tests;
