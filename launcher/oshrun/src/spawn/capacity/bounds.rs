//! The limits of processes and memory on this host: of the kernel, the user and control groups.
//!
//! A value that cannot be read is no limit.

use std::fs;

use rushmem_topology::GroupLimit;
use rustix::process::getrlimit;

/// The number of lowest process IDs that the kernel skips when it wraps around.
const RESERVED_NUMBERS: u64 = 300;

/// Capabilities that lift the limit of a user's processes: CAP_SYS_ADMIN and CAP_SYS_RESOURCE.
const LIFTING: u64 = 1 << 21 | 1 << 24;

/// A limited resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resource {
    /// Processes and threads.
    Tasks,
    /// Bytes of memory.
    Memory,
}

/// The limit of a resource on this host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResourceLimit {
    /// The resource.
    pub resource: Resource,
    /// The source of the limit, as the subject of "leaves room for".
    pub source: String,
    /// The limit.
    pub limit: u64,
    /// The amount in use.
    pub used: u64,
    /// The way to raise it.
    pub remedy: &'static str,
}

impl ResourceLimit {
    /// Returns how much is left.
    pub fn room(&self) -> u64 {
        self.limit.saturating_sub(self.used)
    }
}

/// Returns all bounds that may be too low for this number of further processes and threads.
pub fn find(tasks: u64) -> Vec<ResourceLimit> {
    let read = |path: &str| fs::read_to_string(path).ok();
    let number = |path: &str| read(path)?.trim().parse::<u64>().ok();
    let used = read("/proc/loadavg").as_deref().and_then(running).unwrap_or(0);
    let of_kernel = |path: &str, reserved: u64, remedy| {
        let limit = number(path)?.saturating_sub(reserved);
        Some(ResourceLimit {
            resource: Resource::Tasks,
            source: path.to_string(),
            limit,
            used,
            remedy,
        })
    };
    let pid_max = "start fewer PEs, or let root raise it with sysctl kernel.pid_max";
    let threads_max = "start fewer PEs, or let root raise it with sysctl kernel.threads-max";
    let mut bounds: Vec<ResourceLimit> = [
        of_kernel("/proc/sys/kernel/pid_max", RESERVED_NUMBERS, pid_max),
        of_kernel("/proc/sys/kernel/threads-max", 0, threads_max),
        of_user(used + tasks),
        read("/proc/meminfo").as_deref().and_then(of_memory),
    ]
    .into_iter()
    .flatten()
    .collect();
    bounds.extend(of_groups());
    bounds
}

/// Returns the number of processes and threads, from /proc/loadavg.
fn running(loadavg: &str) -> Option<u64> {
    loadavg.split_ascii_whitespace().nth(3)?.split_once('/')?.1.parse().ok()
}

/// Returns the limit of this user's processes, if it applies to this process and is below `most`.
fn of_user(most: u64) -> Option<ResourceLimit> {
    let limit = getrlimit(rustix::process::Resource::Nproc).current?;
    if limit >= most || is_lifted(&fs::read_to_string("/proc/self/status").ok()?) {
        return None;
    }
    let own = rustix::process::getuid().as_raw();
    let entries = fs::read_dir("/proc").ok()?.flatten();
    let is_process = |name: &str| name.bytes().all(|byte| byte.is_ascii_digit());
    let statuses = entries
        .filter(|entry| entry.file_name().to_str().is_some_and(is_process))
        .filter_map(|entry| fs::read_to_string(entry.path().join("status")).ok());
    let used = statuses.filter_map(|status| threads(&status, own)).sum();
    Some(ResourceLimit {
        resource: Resource::Tasks,
        source: "the limit of this user's processes (RLIMIT_NPROC)".to_string(),
        limit,
        used,
        remedy: "start fewer PEs, or raise it with ulimit -u",
    })
}

/// Returns the bounds of all groups that contain this process.
fn of_groups() -> impl Iterator<Item = ResourceLimit> {
    let of = |resource, remedy| {
        move |of: GroupLimit| ResourceLimit {
            resource,
            source: of.file.display().to_string(),
            limit: of.limit,
            used: of.used,
            remedy,
        }
    };
    let tasks = "start fewer PEs, or ask the administrator of this host for a higher limit";
    let memory = "start fewer PEs, or request more memory for this job";
    let tasks = GroupLimit::of_tasks().into_iter().map(of(Resource::Tasks, tasks));
    tasks.chain(GroupLimit::of_memory().into_iter().map(of(Resource::Memory, memory)))
}

fn field<'a>(status: &'a str, name: &str) -> Option<&'a str> {
    status.lines().find_map(|line| line.strip_prefix(name)?.split_ascii_whitespace().next())
}

/// Returns true if the kernel exempts the process with this status from its limit.
fn is_lifted(status: &str) -> bool {
    let capabilities = field(status, "CapEff:").and_then(|text| u64::from_str_radix(text, 16).ok());
    field(status, "Uid:") == Some("0") || capabilities.is_some_and(|have| have & LIFTING != 0)
}

/// Returns the number of threads of the process with this status, if it belongs to this user.
fn threads(status: &str, user: u32) -> Option<u64> {
    let is_own = field(status, "Uid:")?.parse() == Ok(user);
    is_own.then(|| field(status, "Threads:")?.parse().ok())?
}

/// Returns the available memory, from /proc/meminfo.
fn of_memory(meminfo: &str) -> Option<ResourceLimit> {
    let bytes = |name| Some(field(meminfo, name)?.parse::<u64>().ok()? << 10);
    let swap = |name| bytes(name).unwrap_or(0);
    let limit = bytes("MemTotal:")? + swap("SwapTotal:");
    let free = bytes("MemAvailable:")? + swap("SwapFree:");
    Some(ResourceLimit {
        resource: Resource::Memory,
        source: "this host".to_string(),
        limit,
        used: limit.saturating_sub(free),
        remedy: "start fewer PEs, or use more hosts",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_the_kernel_are_read() {
        assert_eq!(running("0.93 1.31 1.10 3/1019 30709\n"), Some(1019));
        assert_eq!(running(""), None);
        let meminfo = "MemTotal:  1000 kB\nMemFree:  1 kB\nMemAvailable:  600 kB\nSwapTotal:  100 kB\nSwapFree:  50 kB\n";
        let bound = of_memory(meminfo).expect("all there");
        assert_eq!((bound.limit, bound.used, bound.room()), (1100 << 10, 450 << 10, 650 << 10));
        assert_eq!(of_memory("MemTotal: 5 kB\n"), None);
    }

    #[test]
    fn processes_of_a_user_are_counted_with_their_threads() {
        let status = "Name:\ta\nUid:\t1000\t0\t0\t0\nThreads:\t7\nCapEff:\t0000000000000000\n";
        assert_eq!((threads(status, 1000), threads(status, 0)), (Some(7), None));
        assert!(!is_lifted(status));
        assert!(is_lifted(&status.replace("1000\t0", "0\t0")));
        assert!(is_lifted(&status.replace("0000000000000000", "0000000001000000")));
    }
}
