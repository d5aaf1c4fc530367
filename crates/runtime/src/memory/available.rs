//! How much memory the node has and how much of it is available, to warn before the kernel has to
//! kill a process.

use std::fs::read_to_string;

/// Bytes available on this node without swapping, by the kernel's estimate and the limit of this
/// process's cgroup; `None` if neither is known.
pub(crate) fn bytes() -> Option<u64> {
    let confined = of_own_cgroup("memory.max").zip(of_own_cgroup("memory.current"));
    let confined = confined.and_then(|(max, current)| max.checked_sub(current));
    [of_machine("MemAvailable:"), confined].into_iter().flatten().min()
}

/// All memory of this node, as far as this process's cgroup may use it; `None` if that is not
/// known.
pub(crate) fn total() -> Option<u64> {
    [of_machine("MemTotal:"), of_own_cgroup("memory.max")].into_iter().flatten().min()
}

fn of_machine(what: &str) -> Option<u64> {
    of_meminfo(&read_to_string("/proc/meminfo").ok()?, what)
}

fn of_own_cgroup(name: &str) -> Option<u64> {
    let cgroup = read_to_string("/proc/self/cgroup").ok()?;
    let file = format!("/sys/fs/cgroup{}/{name}", of_cgroup(&cgroup)?);
    read_to_string(file).ok()?.trim().parse().ok()
}

fn of_meminfo(text: &str, what: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(what))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? << 10)
}

/// The process's folder in the unified hierarchy.
fn of_cgroup(text: &str) -> Option<&str> {
    text.lines().find_map(|line| line.strip_prefix("0::"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_files_are_understood() {
        let meminfo = "MemTotal:  24 kB\nMemAvailable:   123 kB\n";
        assert_eq!(of_meminfo(meminfo, "MemAvailable:"), Some(123 << 10));
        assert_eq!(of_meminfo("MemTotal: 24 kB\n", "MemAvailable:"), None);
        assert_eq!(of_cgroup("1:cpu:/x\n0::/a/b\n"), Some("/a/b"));
    }
}
