//! Whether this host has room for the processes of its PEs, asked before the first of them is started: a host that runs out
//! of processes or memory is of no use to anybody.
//!
//! Only what a job cannot do without counts, so nothing that could run is refused; a job that passes may need more, and
//! fails then where it does. `bounds` finds what this host allows; here is what a job needs, and the judgement.

mod bounds;
mod groups;

use crate::failure::Failure;

/// Memory that the smallest PE takes: its own, the kernel's for it, and that of who starts it for its streams.
const MEMORY_OF_PE: u64 = 256 * 1024;

/// Processes and threads of a process that holds PEs: itself, those that read and write its streams, and its guard.
const TASKS_OF_HOLDER: u64 = 4;

/// What there is only so much of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Resource {
    /// Processes and threads.
    Tasks,
    /// Bytes of memory.
    Memory,
}

/// What this host allows of a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Bound {
    resource: Resource,
    /// Who sets it, in a sentence that goes on with "leaves room for".
    source: String,
    limit: u64,
    used: u64,
    /// What raises it.
    cure: &'static str,
}

impl Bound {
    fn room(&self) -> u64 {
        self.limit.saturating_sub(self.used)
    }
}

/// Checks that `n_pes` PEs can run on this host, of which each process holds `pes_per_process`.
///
/// # Errors
/// What there is too little of.
pub fn check(n_pes: u32, pes_per_process: u32) -> Result<(), Failure> {
    let needed = needed(n_pes, pes_per_process);
    match refusal(n_pes, needed, &bounds::find(needed.0)) {
        Some(sentence) => Err(Failure::general(sentence)),
        None => Ok(()),
    }
}

/// Processes and threads beside those that run already, and bytes of memory.
fn needed(n_pes: u32, pes_per_process: u32) -> (u64, u64) {
    let n_holders = u64::from(n_pes.div_ceil(pes_per_process.max(1)));
    let n_pes = u64::from(n_pes);
    (n_pes + n_holders * TASKS_OF_HOLDER - 1, n_pes * MEMORY_OF_PE)
}

/// The sentence about the tightest bound, if it is too tight.
fn refusal(n_pes: u32, (tasks, memory): (u64, u64), bounds: &[Bound]) -> Option<String> {
    let needed = |bound: &Bound| match bound.resource {
        Resource::Tasks => tasks,
        Resource::Memory => memory,
    };
    let is_short = |bound: &&Bound| bound.room() < needed(bound);
    // The smallest part of what is needed.
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
mod tests {
    use super::*;

    fn bound(resource: Resource, source: &str, limit: u64, used: u64) -> Bound {
        Bound { resource, source: source.to_string(), limit, used, cure: "start fewer PEs" }
    }

    #[test]
    fn every_pe_and_every_process_that_holds_some_counts() {
        assert_eq!(needed(1, 256), (4, 256 * 1024));
        assert_eq!(needed(256, 256).0, 259);
        assert_eq!(needed(257, 256).0, 264);
        assert_eq!(needed(u32::MAX, 1).1, u64::from(u32::MAX) << 18);
    }

    #[test]
    fn the_tightest_bound_is_named_with_figures_and_cure() {
        let bounds = [
            bound(Resource::Tasks, "a", 1000, 900),
            bound(Resource::Tasks, "b", 300, 250),
            bound(Resource::Memory, "c", 1 << 40, 0),
        ];
        let refused = |n_pes| refusal(n_pes, needed(n_pes, 256), &bounds);
        assert_eq!(refused(47), None);
        let sentence = "48 PEs on this host need at least 51 processes and threads, but b leaves room for 50 (limit 300, \
                        in use 250): start fewer PEs";
        assert_eq!(refused(48).as_deref(), Some(sentence));
    }

    #[test]
    fn memory_is_counted_in_mebibytes() {
        let bounds = [bound(Resource::Memory, "c", 30 << 20, 20 << 20)];
        assert_eq!(refusal(40, needed(40, 256), &bounds), None);
        let sentence = "48 PEs on this host need at least 12 MiB of memory, but c leaves room for 10 MiB (limit 30 MiB, in \
                        use 20 MiB): start fewer PEs";
        assert_eq!(refusal(48, needed(48, 256), &bounds).as_deref(), Some(sentence));
        let full = [bound(Resource::Memory, "c", 1, 2)];
        assert!(refusal(1, needed(1, 256), &full).is_some());
    }

    #[test]
    fn this_host_has_room_for_one_pe_and_not_for_all_that_can_be_asked_for() {
        assert_eq!(check(1, 256), Ok(()));
        let failure = check(u32::MAX, 256).expect_err("a petabyte");
        assert_eq!(failure.status, 1, "{failure:?}");
    }
}
