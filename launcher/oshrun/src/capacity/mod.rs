//! Checks before the first PE is started whether this host has room for the processes of its PEs: a host that runs out of
//! processes or memory is unusable for everybody.
//!
//! Only what a job needs at least counts, so no job that could run is refused. A job that passes may need more later and
//! fail at that point. `bounds` and `groups` find what this host allows; this file computes what a job needs and compares.

mod bound;
mod bounds;
mod groups;

use crate::failure::Failure;

use bound::{Bound, Resource};

/// Memory of the smallest PE: its own, that of the kernel, and that of the process that starts it, for its streams.
const MEMORY_OF_PE: u64 = 256 * 1024;

/// Processes and threads of a process that starts PEs: itself, the threads for its streams, and its guard.
const TASKS_OF_HOLDER: u64 = 4;

/// Checks that `n_pes` PEs can run on this host; each process starts `pes_per_process` of them.
///
/// # Errors
/// When something is too small for them.
pub fn check(n_pes: u32, pes_per_process: u32) -> Result<(), Failure> {
    let needed = needed(n_pes, pes_per_process);
    match refusal(n_pes, needed, &bounds::find(needed.0)) {
        Some(sentence) => Err(Failure::general(sentence)),
        None => Ok(()),
    }
}

/// Further processes and threads, and bytes of memory.
fn needed(n_pes: u32, pes_per_process: u32) -> (u64, u64) {
    let n_holders = u64::from(n_pes.div_ceil(pes_per_process.max(1)));
    let n_pes = u64::from(n_pes);
    (n_pes + n_holders * TASKS_OF_HOLDER - 1, n_pes * MEMORY_OF_PE)
}

/// The message about the tightest bound, if it is too tight.
fn refusal(n_pes: u32, (tasks, memory): (u64, u64), bounds: &[Bound]) -> Option<String> {
    let needed = |bound: &Bound| match bound.resource {
        Resource::Tasks => tasks,
        Resource::Memory => memory,
    };
    let is_short = |bound: &&Bound| bound.room() < needed(bound);
    // The bound that covers the smallest part of what is needed.
    let part = |bound: &&Bound| u128::from(bound.room()) * (1 << 32) / u128::from(needed(bound));
    let bound = bounds.iter().filter(is_short).min_by_key(part)?;
    let amount = |number| match bound.resource {
        Resource::Tasks => format!("{number}"),
        Resource::Memory => format!("{} MiB", number >> 20),
    };
    let what = match bound.resource {
        Resource::Tasks => "processes and threads",
        Resource::Memory => "of memory",
    };
    Some(format!(
        "{n_pes} PEs on this host need at least {} {what}, but {} leaves room for {} (limit {}, in use {}): {}",
        amount(needed(bound)),
        bound.source,
        amount(bound.room()),
        amount(bound.limit),
        amount(bound.used),
        bound.cure
    ))
}

#[cfg(test)]
mod tests;
