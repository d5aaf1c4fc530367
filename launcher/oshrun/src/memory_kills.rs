//! Whether the kernel has killed a PE for lack of memory: control groups count such kills, whose
//! signal may come from anywhere.

use rushmem_topology::GroupLimit;

/// The limits of memory, each with the number of kills before the job.
#[derive(Debug)]
pub struct MemoryKills(Vec<(GroupLimit, u64)>);

impl MemoryKills {
    /// Those until now.
    pub fn until_now() -> MemoryKills {
        let with_number = |limit: GroupLimit| {
            let n_killed = limit.n_killed();
            (limit, n_killed)
        };
        MemoryKills(GroupLimit::of_memory().into_iter().map(with_number).collect())
    }

    /// The limit that has led to kills since then, if one has.
    pub fn since(&self) -> Option<String> {
        let (group, _) = self.0.iter().find(|(group, before)| group.n_killed() > *before)?;
        Some(format!("{} MiB ({})", group.limit >> 20, group.file.display()))
    }
}
