//! The limits of the control group of this process and of its ancestors: version 2, or the
//! controllers pids and memory of version 1.

use std::fs;
use std::path::Path;

use rushmem_topology::control_groups;

use super::bound::{Resource, ResourceLimit};

/// The file names of the memory controller in a version.
struct MemoryFiles {
    limit: &'static str,
    used: &'static str,
    /// The reclaimable part of the used memory, in memory.stat.
    cached: [&'static str; 2],
}

const MEMORY: [MemoryFiles; 2] = [
    MemoryFiles {
        limit: "memory.max",
        used: "memory.current",
        cached: ["inactive_file", "active_file"],
    },
    MemoryFiles {
        limit: "memory.limit_in_bytes",
        used: "memory.usage_in_bytes",
        cached: ["total_inactive_file", "total_active_file"],
    },
];

/// The bounds of all groups that contain this process.
pub fn find() -> Vec<ResourceLimit> {
    control_groups().iter().flat_map(|folder| bounds(folder)).collect()
}

/// The bounds of a group.
fn bounds(folder: &Path) -> impl Iterator<Item = ResourceLimit> {
    let read = |name: &str| fs::read_to_string(folder.join(name)).ok();
    let number = |name: &str| read(name)?.trim().parse::<u64>().ok();
    let source = |name: &str| folder.join(name).display().to_string();
    let tasks = || {
        let (limit, used) = (number("pids.max")?, number("pids.current")?);
        let remedy = "start fewer PEs, or ask the administrator of this host for a higher limit";
        Some(ResourceLimit {
            resource: Resource::Tasks,
            source: source("pids.max"),
            limit,
            used,
            remedy,
        })
    };
    let memory = |names: &MemoryFiles| {
        let limit = number(names.limit)?;
        let cached = cached(&read("memory.stat").unwrap_or_default(), names.cached);
        let used = number(names.used)?.saturating_sub(cached);
        let remedy = "start fewer PEs, or request more memory for this job";
        Some(ResourceLimit {
            resource: Resource::Memory,
            source: source(names.limit),
            limit,
            used,
            remedy,
        })
    };
    tasks().into_iter().chain(MEMORY.iter().filter_map(memory)).collect::<Vec<_>>().into_iter()
}

/// The sum of these values of memory.stat.
fn cached(stat: &str, names: [&str; 2]) -> u64 {
    let figure = |line: &str| {
        let (name, figure) = line.split_once(' ')?;
        names.contains(&name).then(|| figure.trim().parse::<u64>().ok())?
    };
    stat.lines().filter_map(figure).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_values_of_a_group_are_read() {
        let folder = std::env::temp_dir().join(format!("oshrun-group-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        let write = |name: &str, text: &str| fs::write(folder.join(name), text).expect("a file");
        let found = || {
            bounds(&folder)
                .map(|bound| (bound.resource, bound.limit, bound.used))
                .collect::<Vec<_>>()
        };
        assert_eq!(found(), []);
        write("pids.max", "max\n");
        write("pids.current", "7\n");
        write("memory.max", "max\n");
        write("memory.current", "5000\n");
        assert_eq!(found(), []);
        write("pids.max", "50\n");
        write("memory.max", "9000\n");
        write("memory.stat", "anon 1\nfile 900\ninactive_file 300\nactive_file 200\n");
        assert_eq!(found(), [(Resource::Tasks, 50, 7), (Resource::Memory, 9000, 4500)]);
        fs::remove_dir_all(folder).expect("own folder");
    }
}
