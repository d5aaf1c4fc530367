//! What the kernel shows of the process of a PE, for explanations of a job that hangs.
//!
//! Two looks some time apart show whether it computes: at one look a process that sleeps most of
//! the time may run, and one that computes may sleep.

use std::os::unix::fs::MetadataExt;
use std::time::Instant;

use rushmem_explain::report::ProcessState;

/// What /proc shows of a process at one time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Look {
    at: Instant,
    state: char,
    /// When the process was started: another process with the same number has another time.
    start: u64,
    /// CPU time of all its threads, in clock ticks.
    ticks: u64,
    /// Its threads by their numbers, and the CPU time of each.
    threads: Vec<(u32, u64)>,
}

/// The PID namespace of this process, by its inode number. `None` where /proc does not show it.
pub fn pid_namespace() -> Option<u64> {
    Some(std::fs::metadata("/proc/self/ns/pid").ok()?.ino())
}

/// Looks at the process without its threads, which is enough for its state. `None` if there is no
/// such process.
pub fn look_at_state(pid: u32) -> Option<Look> {
    stat(&pid.to_string())
}

fn stat(of: &str) -> Option<Look> {
    parse(&std::fs::read_to_string(format!("/proc/{of}/stat")).ok()?)
}

/// Looks at the process and its threads. `None` if there is no such process.
pub fn look(pid: u32) -> Option<Look> {
    let mut look = look_at_state(pid)?;
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).ok()?.flatten();
    let numbers = threads.filter_map(|thread| thread.file_name().to_str()?.parse::<u32>().ok());
    // A thread may end meanwhile.
    let ticks = |number: u32| Some((number, stat(&format!("{pid}/task/{number}"))?.ticks));
    look.threads = numbers.filter_map(ticks).collect();
    Some(look)
}

/// Parses /proc/PID/stat. The name of the program may contain anything, so the fields after the
/// last parenthesis are used.
fn parse(stat: &str) -> Option<Look> {
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    // proc_pid_stat(5) counts the state, the first of these, as field 3.
    let number = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
    Some(Look {
        at: Instant::now(),
        state: fields.first()?.chars().next()?,
        start: number(22)?,
        ticks: number(14)? + number(15)?,
        threads: Vec::new(),
    })
}

/// The state of the process, from two looks at it.
pub fn between(first: Option<&Look>, second: Option<&Look>) -> ProcessState {
    let ended = || ProcessState::Ended("ended".to_owned());
    let Some(second) = second else { return ended() };
    let Some(first) = first.filter(|first| first.start == second.start) else { return ended() };
    let ticks = second.ticks.saturating_sub(first.ticks);
    match second.state {
        'Z' | 'X' => ended(),
        'T' => ProcessState::Stopped,
        't' => ProcessState::Traced,
        // A process that reads a file is in this state again and again, but not for long.
        'D' if ticks == 0 && first.state == 'D' => ProcessState::WaitsForDisk,
        // One that sleeps most of the time may be seen in this state once.
        'R' if first.state == 'R' => runs(ticks, first, second),
        _ if ticks > 0 => runs(ticks, first, second),
        _ => ProcessState::Sleeps,
    }
}

fn runs(ticks: u64, first: &Look, second: &Look) -> ProcessState {
    let of_ms = second.at.duration_since(first.at).as_millis() as u64;
    let cpu_ms = ticks * 1000 / rustix::param::clock_ticks_per_second().max(1);
    ProcessState::Runs { cpu_ms, of_ms }
}

/// How many threads of the process used CPU time between two looks at it, apart from those of the
/// library and those that are `waiting` by its status.
pub fn busy_threads(pid: u32, first: &Look, second: &Look, waiting: &[u32]) -> u32 {
    let before = |number: u32| first.threads.iter().find(|(other, _)| *other == number);
    let worked = |&(number, ticks): &(u32, u64)| before(number).is_none_or(|(_, b)| ticks > *b);
    let others = second.threads.iter().filter(|(number, _)| !waiting.contains(number));
    let busy = others.filter(|thread| worked(thread) && thread.1 > 0);
    busy.filter(|(number, _)| !is_of_library(pid, *number)).count() as u32
}

/// Whether a thread is one of the library or of UCX, by its name. A thread without a name of its
/// own, as those of libfabric, has the name of the program.
fn is_of_library(pid: u32, number: u32) -> bool {
    let name = |of: &str| std::fs::read_to_string(format!("/proc/{of}/comm")).unwrap_or_default();
    let (program, thread) = (name(&pid.to_string()), name(&format!("{pid}/task/{number}")));
    thread != program && (thread.starts_with("rushmem") || thread.trim_end() == "async")
}

#[cfg(test)]
mod tests;
