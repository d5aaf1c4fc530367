//! Checks before the first PE is started whether this host has room for its processes. A host
//! without free processes or memory would be unusable.
//!
//! Only the minimum needs of a job are checked, so that no job that could run is refused. A job
//! that passes may need more later. `bounds` finds the limits of this host.

mod bounds;

use crate::report::failure::StartFailure;
use bounds::{Resource, ResourceLimit};

/// Memory of the smallest PE: its own, in the kernel, and in the process that starts it.
const MEMORY_OF_PE: u64 = 256 * 1024;

/// Processes and threads of a process that starts PEs: itself, its writer threads, and its guard.
const TASKS_OF_LAUNCHER: u64 = 4;

/// Checks that `n_pes` PEs can run on this host.
pub fn check(n_pes: u32) -> Result<(), StartFailure> {
    let needed = needed(n_pes);
    match refusal(n_pes, needed, &bounds::find(needed.0)) {
        Some(sentence) => Err(StartFailure::general(sentence)),
        None => Ok(()),
    }
}

/// Returns the number of further processes and threads, and of bytes of memory.
fn needed(n_pes: u32) -> (u64, u64) {
    let n_pes = u64::from(n_pes);
    (n_pes + TASKS_OF_LAUNCHER - 1, n_pes * MEMORY_OF_PE)
}

/// Returns the message about the bound that covers the smallest part of what is needed, if any is
/// too low.
fn refusal(n_pes: u32, (tasks, memory): (u64, u64), bounds: &[ResourceLimit]) -> Option<String> {
    let needed = |bound: &ResourceLimit| match bound.resource {
        Resource::Tasks => tasks,
        Resource::Memory => memory,
    };
    let is_short = |bound: &&ResourceLimit| bound.room() < needed(bound);
    let part =
        |bound: &&ResourceLimit| u128::from(bound.room()) * (1 << 32) / u128::from(needed(bound));
    let bound = bounds.iter().filter(is_short).min_by_key(part)?;
    let amount = |number| match bound.resource {
        Resource::Tasks => format!("{number}"),
        Resource::Memory => format!("{} MiB", number >> 20),
    };
    let what = match bound.resource {
        Resource::Tasks => "processes and threads",
        Resource::Memory => "of memory",
    };
    // Cause: a limit of this user, container or host is too low for the job. Remedy: the message
    // ends with it.
    Some(format!(
        "{n_pes} PEs on this host need at least {} {what}, but {} leaves room for {} (limit {}, in use {}): {}",
        amount(needed(bound)),
        bound.source,
        amount(bound.room()),
        amount(bound.limit),
        amount(bound.used),
        bound.remedy
    ))
}

#[cfg(test)]
mod tests;
