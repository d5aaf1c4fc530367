//! The limits of this host: checks that descriptors, processes and memory suffice for a job, before
//! the first PE is started. A host that runs out of processes or memory would be unusable.
//!
//! Only the minimum needs of a job are checked, so that no job that could run is refused. A job
//! that passes may need more later. A limit that cannot be read is ignored.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::sync::OnceLock;

use rushmem_system::limits::getrlimit;
use rushmem_topology::GroupLimit;
use rustix::process::{Resource as Rlimited, Rlimit, setrlimit};

use crate::errors::StartFailure;

/// The lowest number of an inherited descriptor, above those that scripts use explicitly.
pub const INHERITED_FROM: i32 = 100;

/// Descriptors for each PE: a socket and two output streams.
const FDS_OF_PE: u64 = 3;

/// Additional descriptors for each PE with output files.
const FDS_OF_FILES: u64 = 2;

/// Descriptors for each daemon: its three standard streams.
const FDS_OF_DAEMON: u64 = 3;

/// Descriptors of oshrun itself: its streams, the event loop, the guard, the memory of the node,
/// and those that are open while a PE starts.
const OWN_FDS: u64 = 32;

/// Memory that the smallest PE needs: in its process, in the kernel, and in the process that starts
/// it. Larger PEs need much more, so a higher number could refuse a job that runs.
const MEMORY_OF_PE: u64 = 256 * 1024;

/// Processes and threads of a process that starts PEs: the process, its guard, and two threads, for
/// the output in oshrun and for the connection to oshrun in a daemon.
const TASKS_OF_LAUNCHER: u64 = 4;

/// Number of the lowest process IDs, which the kernel skips when it starts over with low ones.
const RESERVED_NUMBERS: u64 = 300;

/// Capabilities that exempt a process from the limit of a user's processes: CAP_SYS_ADMIN and
/// CAP_SYS_RESOURCE.
const EXEMPTING: u64 = 1 << 21 | 1 << 24;

/// The limit of descriptors that this process inherited, if it has raised it.
static INHERITED: OnceLock<Rlimit> = OnceLock::new();

/// Raises the soft limit of descriptors to the hard one. Returns an error if even that is too low
/// for any job.
pub fn raise_descriptor_limit() -> Result<(), StartFailure> {
    let now = getrlimit(Rlimited::Nofile);
    let raised = Rlimit {
        current: now.maximum,
        ..now
    };
    if raised != now && setrlimit(Rlimited::Nofile, raised).is_ok() {
        // This cannot fail: the value is set only here.
        let _ = INHERITED.set(now);
    }

    let any_job = DescriptorUsers {
        n_pes: 0,
        n_daemons: 0,
        has_files: false,
    };
    any_job.check()
}

/// Returns the limit of descriptors to restore in processes that this one starts, if it has been
/// raised.
pub fn inherited_descriptors() -> Option<Rlimit> {
    INHERITED.get().copied()
}

/// The users of the descriptors of this process.
#[derive(Clone, Copy, Debug)]
pub struct DescriptorUsers {
    /// The number of PEs of this host.
    pub n_pes: u32,
    /// The number of daemons of other hosts.
    pub n_daemons: u32,
    /// True if the output of the PEs goes to files.
    pub has_files: bool,
}

impl DescriptorUsers {
    /// Checks that the limit of descriptors permits them.
    pub fn check(self) -> Result<(), StartFailure> {
        let Some(limit) = getrlimit(Rlimited::Nofile).current else {
            return Ok(());
        };
        match self.refusal(limit) {
            Some(sentence) => Err(StartFailure::general(sentence)),
            None => Ok(()),
        }
    }

    /// Returns the message if a limit of descriptors is too low.
    fn refusal(self, limit: u64) -> Option<String> {
        let per_pe = if self.has_files {
            FDS_OF_PE + FDS_OF_FILES
        } else {
            FDS_OF_PE
        };
        let of_daemons = u64::from(self.n_daemons) * FDS_OF_DAEMON;
        let held = u64::from(self.n_pes) * per_pe + of_daemons;
        // The limit is one of descriptor numbers, not of their count, and inherited descriptors
        // have numbers from INHERITED_FROM on.
        let needed = held.max(INHERITED_FROM as u64) + OWN_FDS;
        if limit >= needed {
            return None;
        }

        let who;
        let enough;
        if limit < INHERITED_FROM as u64 + OWN_FDS {
            who = "any job".to_string();
            enough = String::new();
        } else if self.n_pes == 0 {
            who = format!("a job on {} other hosts", self.n_daemons);
            let n_hosts = (limit - OWN_FDS) / FDS_OF_DAEMON;
            enough = format!(", which suffices for {n_hosts} hosts");
        } else {
            who = format!("a job of {} PEs", self.n_pes);
            let left = limit.saturating_sub(OWN_FDS + of_daemons);
            enough = format!(", which suffices for {}", left / per_pe);
        }
        Some(format!(
            "{who} needs {needed} descriptors and the limit is {limit}{enough}; raise it with ulimit -n {needed}"
        ))
    }
}

/// Checks that processes and memory suffice for `n_pes` PEs on this host.
pub fn check_capacity(n_pes: u32) -> Result<(), StartFailure> {
    let needs = Needs::of(n_pes);
    match capacity_refusal(n_pes, needs, &resource_limits(needs.tasks)) {
        Some(sentence) => Err(StartFailure::general(sentence)),
        None => Ok(()),
    }
}

/// The least that a job needs on this host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Needs {
    /// Processes and threads, besides this process.
    tasks: u64,
    /// Bytes of memory.
    memory: u64,
}

impl Needs {
    fn of(n_pes: u32) -> Needs {
        let n_pes = u64::from(n_pes);
        Needs {
            tasks: n_pes + TASKS_OF_LAUNCHER - 1,
            memory: n_pes * MEMORY_OF_PE,
        }
    }

    fn of_resource(self, resource: Resource) -> u64 {
        match resource {
            Resource::Tasks => self.tasks,
            Resource::Memory => self.memory,
        }
    }
}

/// Returns the message about the scarcest resource: the limit that leaves room for the smallest
/// part of what the job needs. Returns `None` if all limits suffice.
fn capacity_refusal(n_pes: u32, needs: Needs, limits: &[ResourceLimit]) -> Option<String> {
    let scarcest = limits
        .iter()
        .filter(|limit| limit.room() < needs.of_resource(limit.resource))
        .min_by_key(|limit| {
            // The fraction in units of 2^-32. The product fits a u128.
            let needed = needs.of_resource(limit.resource);
            u128::from(limit.room()) * (1 << 32) / u128::from(needed)
        })?;

    let amount = |number| match scarcest.resource {
        Resource::Tasks => format!("{number}"),
        Resource::Memory => format!("{} MiB", number >> 20),
    };
    let what = match scarcest.resource {
        Resource::Tasks => "processes and threads",
        Resource::Memory => "of memory",
    };
    Some(format!(
        "{n_pes} PEs on this host need at least {} {what}, but {} leaves room for {} (limit {}, in use {}): {}",
        amount(needs.of_resource(scarcest.resource)),
        scarcest.source,
        amount(scarcest.room()),
        amount(scarcest.limit),
        amount(scarcest.used),
        scarcest.remedy
    ))
}

/// A limited resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Resource {
    /// Processes and threads.
    Tasks,
    /// Bytes of memory.
    Memory,
}

/// The limit of a resource on this host.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ResourceLimit {
    resource: Resource,
    /// The place that sets the limit, as the subject of "leaves room for".
    source: String,
    limit: u64,
    /// How much of the resource is in use.
    used: u64,
    /// How to raise the limit or need less, for the message.
    remedy: &'static str,
}

impl ResourceLimit {
    /// Returns how much of the resource is left.
    fn room(&self) -> u64 {
        self.limit.saturating_sub(self.used)
    }
}

/// Returns the limits of the kernel, the user, memory and control groups that may be too low for
/// `tasks` further processes and threads.
fn resource_limits(tasks: u64) -> Vec<ResourceLimit> {
    let mut limits = Vec::new();

    // Processes and threads: the numbers of the kernel, and the limit of the user.
    let loadavg = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let used = running(&loadavg).unwrap_or(0);
    let path = "/proc/sys/kernel/pid_max";
    if let Some(pid_max) = number(path) {
        limits.push(ResourceLimit {
            resource: Resource::Tasks,
            source: path.to_string(),
            limit: pid_max.saturating_sub(RESERVED_NUMBERS),
            used,
            remedy: "start fewer PEs, or let root raise it with sysctl kernel.pid_max",
        });
    }
    let path = "/proc/sys/kernel/threads-max";
    if let Some(limit) = number(path) {
        limits.push(ResourceLimit {
            resource: Resource::Tasks,
            source: path.to_string(),
            limit,
            used,
            remedy: "start fewer PEs, or let root raise it with sysctl kernel.threads-max",
        });
    }
    limits.extend(user_limit(used + tasks));

    let meminfo = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    limits.extend(memory_limit(&meminfo));

    for group in GroupLimit::of_tasks() {
        limits.push(group_limit(
            Resource::Tasks,
            &group,
            "start fewer PEs, or ask the administrator of this host for a higher limit",
        ));
    }
    for group in GroupLimit::of_memory() {
        limits.push(group_limit(
            Resource::Memory,
            &group,
            "start fewer PEs, or request more memory for this job",
        ));
    }
    limits
}

/// Returns the number in a file of the kernel.
fn number(path: &str) -> Option<u64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

fn group_limit(resource: Resource, group: &GroupLimit, remedy: &'static str) -> ResourceLimit {
    ResourceLimit {
        resource,
        source: group.file.display().to_string(),
        limit: group.limit,
        used: group.used,
        remedy,
    }
}

/// Returns the number of processes and threads, from /proc/loadavg. Its fourth field has the number
/// of those that run now, a slash, and that of all.
fn running(loadavg: &str) -> Option<u64> {
    let field = loadavg.split_ascii_whitespace().nth(3)?;
    let (_, all) = field.split_once('/')?;
    all.parse().ok()
}

/// Returns the limit of this user's processes, if it applies to this process and may be too low.
/// `needed` is the number of processes and threads of all users and of the job together: a limit
/// from that number on suffices, so the processes of this user need not be counted.
fn user_limit(needed: u64) -> Option<ResourceLimit> {
    let limit = getrlimit(Rlimited::Nproc).current?;
    if limit >= needed || is_exempt(&fs::read_to_string("/proc/self/status").ok()?) {
        return None;
    }

    let own = rustix::process::getuid().as_raw();
    let mut used = 0;
    for entry in fs::read_dir("/proc").ok()?.flatten() {
        let name = entry.file_name();
        let is_process = name.as_bytes().iter().all(u8::is_ascii_digit);
        // A process may end before its file is read.
        if is_process && let Ok(status) = fs::read_to_string(entry.path().join("status")) {
            used += threads(&status, own).unwrap_or(0);
        }
    }

    Some(ResourceLimit {
        resource: Resource::Tasks,
        source: "the limit of this user's processes (RLIMIT_NPROC)".to_string(),
        limit,
        used,
        remedy: "start fewer PEs, or raise it with ulimit -u",
    })
}

/// Returns the first word of a field in a file of /proc such as PID/status.
fn field<'a>(status: &'a str, name: &str) -> Option<&'a str> {
    status
        .lines()
        .find_map(|line| line.strip_prefix(name)?.split_ascii_whitespace().next())
}

/// Returns true if the kernel exempts the process with this status from the limit of its user.
fn is_exempt(status: &str) -> bool {
    let capabilities = field(status, "CapEff:").and_then(|text| u64::from_str_radix(text, 16).ok());
    field(status, "Uid:") == Some("0") || capabilities.is_some_and(|have| have & EXEMPTING != 0)
}

/// Returns the number of threads of the process with this status, if it belongs to this user.
fn threads(status: &str, user: u32) -> Option<u64> {
    let is_own = field(status, "Uid:")?.parse() == Ok(user);
    if !is_own {
        return None;
    }
    field(status, "Threads:")?.parse().ok()
}

/// Returns the available memory, from /proc/meminfo.
fn memory_limit(meminfo: &str) -> Option<ResourceLimit> {
    let bytes = |name| Some(field(meminfo, name)?.parse::<u64>().ok()? << 10);
    // A kernel without swap lists no line for it.
    let limit = bytes("MemTotal:")? + bytes("SwapTotal:").unwrap_or(0);
    let free = bytes("MemAvailable:")? + bytes("SwapFree:").unwrap_or(0);
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

    fn descriptor_refusal(
        limit: u64,
        n_pes: u32,
        n_daemons: u32,
        has_files: bool,
    ) -> Option<String> {
        let users = DescriptorUsers {
            n_pes,
            n_daemons,
            has_files,
        };
        users.refusal(limit)
    }

    #[test]
    fn three_hundred_pes_fit_the_usual_limit() {
        assert_eq!(descriptor_refusal(1024, 330, 0, false), None);
        assert_eq!(descriptor_refusal(1024, 300, 30, false), None);
        assert_eq!(descriptor_refusal(1024, 190, 10, true), None);
        assert_eq!(descriptor_refusal(132, 1, 0, false), None);
    }

    #[test]
    fn what_fits_is_said_and_true() {
        for (n_pes, n_daemons, has_files) in [(4000, 0, false), (4000, 7, true), (4000, 7, false)] {
            let text = descriptor_refusal(4096, n_pes, n_daemons, has_files).expect("too many");
            let fits = text.split_once("suffices for ").expect("what fits").1;
            let fits = fits
                .split(';')
                .next()
                .and_then(|n| n.parse().ok())
                .expect("a number");
            assert_eq!(
                descriptor_refusal(4096, fits, n_daemons, has_files),
                None,
                "{text}"
            );
            assert!(
                descriptor_refusal(4096, fits + 1, n_daemons, has_files).is_some(),
                "{text}"
            );
        }
        let sentence = "a job on 60 other hosts needs 212 descriptors and the limit is 150, which \
                        suffices for 39 hosts; raise it with ulimit -n 212";
        assert_eq!(
            descriptor_refusal(150, 0, 60, false).as_deref(),
            Some(sentence)
        );
        assert!(descriptor_refusal(u64::MAX, u32::MAX, u32::MAX, true).is_none());
    }

    fn bound(resource: Resource, source: &str, limit: u64, used: u64) -> ResourceLimit {
        ResourceLimit {
            resource,
            source: source.to_string(),
            limit,
            used,
            remedy: "start fewer PEs",
        }
    }

    #[test]
    fn pes_and_the_processes_that_start_them_count() {
        assert_eq!(Needs::of(1).tasks, 4);
        assert_eq!(Needs::of(1).memory, 256 * 1024);
        assert_eq!(Needs::of(256).tasks, 259);
        assert_eq!(Needs::of(u32::MAX).memory, u64::from(u32::MAX) << 18);
    }

    #[test]
    fn the_tightest_bound_is_named_with_values_and_remedy() {
        let bounds = [
            bound(Resource::Tasks, "a", 1000, 900),
            bound(Resource::Tasks, "b", 300, 250),
            bound(Resource::Memory, "c", 1 << 40, 0),
        ];
        let refused = |n_pes| capacity_refusal(n_pes, Needs::of(n_pes), &bounds);
        assert_eq!(refused(47), None);
        let sentence = "48 PEs on this host need at least 51 processes and threads, but b leaves room for 50 (limit 300, \
                        in use 250): start fewer PEs";
        assert_eq!(refused(48).as_deref(), Some(sentence));
    }

    #[test]
    fn memory_is_counted_in_mebibytes() {
        let bounds = [bound(Resource::Memory, "c", 30 << 20, 20 << 20)];
        assert_eq!(capacity_refusal(40, Needs::of(40), &bounds), None);
        let sentence = "48 PEs on this host need at least 12 MiB of memory, but c leaves room for 10 MiB (limit 30 MiB, in \
                        use 20 MiB): start fewer PEs";
        assert_eq!(
            capacity_refusal(48, Needs::of(48), &bounds).as_deref(),
            Some(sentence)
        );

        let full = [bound(Resource::Memory, "c", 1, 2)];
        assert!(capacity_refusal(1, Needs::of(1), &full).is_some());
    }

    #[test]
    fn this_host_has_room_for_one_pe_and_not_for_the_maximum() {
        assert_eq!(check_capacity(1), Ok(()));
        let failure = check_capacity(u32::MAX).expect_err("a petabyte");
        assert_eq!(failure.status, 1, "{failure:?}");
    }

    #[test]
    fn values_of_the_kernel_are_read() {
        assert_eq!(running("0.93 1.31 1.10 3/1019 30709\n"), Some(1019));
        assert_eq!(running(""), None);
        let meminfo = "MemTotal:  1000 kB\nMemFree:  1 kB\nMemAvailable:  600 kB\nSwapTotal:  100 kB\nSwapFree:  50 kB\n";
        let bound = memory_limit(meminfo).expect("all there");
        assert_eq!(
            (bound.limit, bound.used, bound.room()),
            (1100 << 10, 450 << 10, 650 << 10)
        );
        assert_eq!(memory_limit("MemTotal: 5 kB\n"), None);
    }

    #[test]
    fn processes_of_a_user_are_counted_with_their_threads() {
        let status = "Name:\ta\nUid:\t1000\t0\t0\t0\nThreads:\t7\nCapEff:\t0000000000000000\n";
        assert_eq!((threads(status, 1000), threads(status, 0)), (Some(7), None));
        assert!(!is_exempt(status));
        assert!(is_exempt(&status.replace("1000\t0", "0\t0")));
        assert!(is_exempt(
            &status.replace("0000000000000000", "0000000001000000")
        ));
    }
}
