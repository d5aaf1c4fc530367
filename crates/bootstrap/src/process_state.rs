//! What the kernel shows of the process of a PE, for explanations of a job that hangs.
//!
//! Two looks some time apart show whether it computes: at one look a process that sleeps most of
//! the time may run, and one that computes may sleep.

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
}

/// Looks at the process. `None` if there is no such process.
pub fn look(pid: u32) -> Option<Look> {
    parse(&std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
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
        'R' => runs(ticks, first, second),
        _ if ticks > 0 => runs(ticks, first, second),
        _ => ProcessState::Sleeps,
    }
}

fn runs(ticks: u64, first: &Look, second: &Look) -> ProcessState {
    let of_ms = second.at.duration_since(first.at).as_millis() as u64;
    let cpu_ms = ticks * 1000 / rustix::param::clock_ticks_per_second().max(1);
    ProcessState::Runs { cpu_ms, of_ms }
}

#[cfg(test)]
mod tests;
