//! Detects that the kernel has killed a PE for lack of memory: control groups count such kills,
//! whose signal may come from anywhere.

use rushmem_topology::GroupLimit;

/// The limits of memory, each with the number of kills before the job.
#[derive(Debug)]
pub struct MemoryKills(Vec<(GroupLimit, u64)>);

impl MemoryKills {
    /// Returns those until now.
    pub fn until_now() -> MemoryKills {
        let with_number = |limit: GroupLimit| {
            let n_killed = limit.n_killed();
            (limit, n_killed)
        };
        MemoryKills(GroupLimit::of_memory().into_iter().map(with_number).collect())
    }

    /// Returns the limit that has led to a kill since the last call, or since then, if one has.
    pub fn another(&mut self) -> Option<String> {
        let grown = |(group, before): &&mut (GroupLimit, u64)| group.n_killed() > *before;
        let (group, before) = self.0.iter_mut().find(grown)?;
        *before += 1;
        Some(format!("{} MiB ({})", group.limit >> 20, group.file.display()))
    }
}
