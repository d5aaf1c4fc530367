//! How much memory the node has and how much of it is available, to warn before the kernel has to
//! kill a process.

use rushmem_topology::GroupLimit;
use std::fs::read_to_string;

/// Bytes available on this node without swapping, by the kernel's estimate and the limits of this
/// process's control groups; `None` if neither is known.
pub(crate) fn bytes() -> Option<u64> {
    let groups = GroupLimit::of_memory().into_iter().map(|of| of.limit.saturating_sub(of.used));
    groups.chain(of_machine("MemAvailable:")).min()
}

/// All memory of this node, as far as this process's control groups may use it; `None` if that is
/// not known.
pub(crate) fn total() -> Option<u64> {
    let groups = GroupLimit::of_memory().into_iter().map(|of| of.limit);
    groups.chain(of_machine("MemTotal:")).min()
}

fn of_machine(what: &str) -> Option<u64> {
    of_meminfo(&read_to_string("/proc/meminfo").ok()?, what)
}

fn of_meminfo(text: &str, what: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(what))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_files_are_understood() {
        let meminfo = "MemTotal:  24 kB\nMemAvailable:   123 kB\n";
        assert_eq!(of_meminfo(meminfo, "MemAvailable:"), Some(123 << 10));
        assert_eq!(of_meminfo("MemTotal: 24 kB\n", "MemAvailable:"), None);
    }
}
