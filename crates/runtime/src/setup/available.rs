//! How much memory is available on the node, to warn before the kernel has to kill a process.

use std::fs::read_to_string;

/// Bytes available on this node without swapping, by the kernel's estimate and the limit of this process's
/// cgroup; `None` if neither is known.
pub(super) fn bytes() -> Option<u64> {
    let whole = read_to_string("/proc/meminfo").ok().and_then(|text| of_meminfo(&text));
    let confined = read_to_string("/proc/self/cgroup").ok().and_then(|text| {
        let folder = format!("/sys/fs/cgroup{}", of_cgroup(&text)?);
        let number = |name: &str| {
            read_to_string(format!("{folder}/{name}")).ok()?.trim().parse::<u64>().ok()
        };
        number("memory.max")?.checked_sub(number("memory.current")?)
    });
    [whole, confined].into_iter().flatten().min()
}

fn of_meminfo(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
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
        assert_eq!(of_meminfo(meminfo), Some(123 << 10));
        assert_eq!(of_meminfo("MemTotal: 24 kB\n"), None);
        assert_eq!(of_cgroup("1:cpu:/x\n0::/a/b\n"), Some("/a/b"));
    }
}
