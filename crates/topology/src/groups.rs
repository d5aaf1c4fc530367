//! Reads the limits of memory and of processes that the control groups of this process set.

use std::fs;
use std::path::{Path, PathBuf};

/// The controllers of version 1 whose directories are read.
const CONTROLLERS: [&str; 2] = ["pids", "memory"];

/// A limit of a control group that contains this process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupLimit {
    /// The file of the limit.
    pub file: PathBuf,
    /// The maximum number of processes and threads together, or of bytes.
    pub limit: u64,
    /// The number in use, without memory that the kernel can reclaim.
    pub used: u64,
}

/// The files of the memory controller in one version of control groups.
struct MemoryFiles {
    limit: &'static str,
    used: &'static str,
    /// The values in memory.stat whose sum is the reclaimable part of the used memory.
    cached: [&'static str; 2],
    /// The file with the number of processes that were killed for lack of memory.
    kills: &'static str,
}

const MEMORY: [MemoryFiles; 2] = [
    MemoryFiles {
        limit: "memory.max",
        used: "memory.current",
        cached: ["inactive_file", "active_file"],
        kills: "memory.events",
    },
    MemoryFiles {
        limit: "memory.limit_in_bytes",
        used: "memory.usage_in_bytes",
        cached: ["total_inactive_file", "total_active_file"],
        kills: "memory.oom_control",
    },
];

/// In version 1 a number above this one means that there is no limit.
const NO_LIMIT: u64 = 1 << 60;

impl GroupLimit {
    /// Returns the limits of processes and threads that the visible groups set, the innermost group
    /// first; none if no group sets one.
    pub fn of_tasks() -> Vec<GroupLimit> {
        control_groups()
            .iter()
            .filter_map(|dir| tasks(dir))
            .collect()
    }

    /// Returns the limits of memory that the visible groups set, the innermost group first; none if
    /// no group sets one.
    pub fn of_memory() -> Vec<GroupLimit> {
        control_groups()
            .iter()
            .filter_map(|dir| memory(dir))
            .collect()
    }

    /// Returns the number of processes that the kernel has killed in the group of a memory limit
    /// for lack of memory; 0 if it is not known.
    pub fn n_killed(&self) -> u64 {
        self.file.parent().and_then(kills_in).unwrap_or(0)
    }
}

/// Returns the number of processes that the kernel has killed for lack of memory in the innermost
/// control group of this process for which it counts them, or else on the whole host; `None` if it
/// does not count them, as before Linux 4.13. Another group on the host may have a limit of its
/// own, and kills there say nothing about the processes of this group.
pub fn memory_kills() -> Option<u64> {
    kills(&control_groups(), Path::new("/proc/vmstat"))
}

fn kills(groups: &[PathBuf], of_host: &Path) -> Option<u64> {
    groups
        .iter()
        .find_map(|dir| kills_in(dir))
        .or_else(|| value(&fs::read_to_string(of_host).ok()?, "oom_kill"))
}

/// Returns the number of processes that the kernel has killed for lack of memory in the group of a
/// directory; `None` if it does not count them there.
fn kills_in(dir: &Path) -> Option<u64> {
    MEMORY.iter().find_map(|names| {
        let text = fs::read_to_string(dir.join(names.kills)).ok()?;
        value(&text, "oom_kill")
    })
}

fn tasks(dir: &Path) -> Option<GroupLimit> {
    let file = dir.join("pids.max");
    Some(GroupLimit {
        limit: number(&file)?,
        used: number(&dir.join("pids.current"))?,
        file,
    })
}

fn memory(dir: &Path) -> Option<GroupLimit> {
    MEMORY.iter().find_map(|names| {
        let file = dir.join(names.limit);
        let limit = number(&file).filter(|limit| *limit < NO_LIMIT)?;
        let stat = fs::read_to_string(dir.join("memory.stat")).unwrap_or_default();
        let cached = names.cached.iter().filter_map(|name| value(&stat, name));
        let used = number(&dir.join(names.used))?;
        Some(GroupLimit {
            file,
            limit,
            used: used.saturating_sub(cached.sum()),
        })
    })
}

fn number(file: &Path) -> Option<u64> {
    fs::read_to_string(file).ok()?.trim().parse().ok()
}

/// Returns the value with this name. Each line of `text` has a name and a value.
fn value(text: &str, name: &str) -> Option<u64> {
    let mut lines = text.lines().filter_map(|line| line.split_once(' '));
    let (_, value) = lines.find(|(line_name, _)| *line_name == name)?;
    value.trim().parse().ok()
}

/// Returns the directories of the groups that contain this process, in each hierarchy the innermost
/// first.
fn control_groups() -> Vec<PathBuf> {
    let read = |path| fs::read_to_string(path).unwrap_or_default();
    dirs(&read("/proc/self/cgroup"), &read("/proc/self/mountinfo"))
}

/// Returns the directories of the groups that `groups`, a text of /proc/self/cgroup, lists.
/// `mounts` is a text of /proc/self/mountinfo.
fn dirs(groups: &str, mounts: &str) -> Vec<PathBuf> {
    let mut dirs = Vec::new();
    for line in groups.lines() {
        // A line has the number of the hierarchy, its controllers and the path of the group.
        let fields: Vec<&str> = line.splitn(3, ':').collect();
        let [_, controllers, path] = fields[..] else {
            continue;
        };

        let mounted = mounts
            .lines()
            .find_map(|mount| Hierarchy::of_mount(mount, controllers));
        let Some(Hierarchy { root, mount_point }) = mounted else {
            continue;
        };

        // Groups above the root of the mount are not visible from here.
        let below = Path::new(path).strip_prefix(root).unwrap_or(Path::new(""));
        dirs.extend(below.ancestors().map(|below| mount_point.join(below)));
    }
    dirs
}

/// A mounted hierarchy of control groups.
struct Hierarchy<'a> {
    /// The group that is mounted.
    root: &'a Path,
    mount_point: &'a Path,
}

impl Hierarchy<'_> {
    /// Parses a line of /proc/self/mountinfo. Returns the hierarchy if it has one of `controllers`,
    /// a list in the form of /proc/self/cgroup. An empty list denotes version 2. Controllers that
    /// are not in [`CONTROLLERS`] are ignored.
    fn of_mount<'a>(mount: &'a str, controllers: &str) -> Option<Hierarchy<'a>> {
        // Optional fields end with a hyphen. The kind, the source and the options follow it.
        let (front, back) = mount.split_once(" - ")?;
        // The numbers of the mount, of its parent and of its device come first.
        let mut front = front.split(' ').skip(3);
        let root = front.next()?;
        let mount_point = front.next()?;

        let mut back = back.split(' ');
        let kind = back.next()?;
        let _source = back.next()?;
        let options: Vec<&str> = back.next()?.split(',').collect();

        let is_wanted = if controllers.is_empty() {
            kind == "cgroup2"
        } else {
            kind == "cgroup"
                && controllers
                    .split(',')
                    .any(|name| CONTROLLERS.contains(&name) && options.contains(&name))
        };
        if !is_wanted {
            return None;
        }

        Some(Hierarchy {
            root: Path::new(root),
            mount_point: Path::new(mount_point),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "\
        31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755\n\
        32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n\
        35 31 0:32 /docker/a /sys/fs/cgroup/memory rw,relatime shared:4 - cgroup cgroup rw,memory\n\
        39 31 0:36 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n";

    #[test]
    fn visible_groups_of_version_1_are_found() {
        let groups = "9:name=systemd:/x\n8:pids:/a/b\n4:memory:/docker/a/c\n1:cpu:/a\n0::/\n";
        let expected = ["pids/a/b", "pids/a", "pids", "memory/c", "memory"];
        let expected = expected.map(|path| Path::new("/sys/fs/cgroup").join(path));
        let found = dirs(groups, MOUNTS);
        assert!(
            found
                .iter()
                .map(|dir| dir.components().as_path())
                .eq(expected),
            "{found:?}"
        );
    }

    #[test]
    fn groups_of_version_2_are_found() {
        let mounts = "30 23 0:26 / /sys/fs/cgroup rw shared:9 - cgroup2 cgroup2 rw,nsdelegate\n";
        let found = dirs("0::/user.slice/job\n", mounts);
        let expected = ["user.slice/job", "user.slice", ""];
        let expected = expected.map(|path| Path::new("/sys/fs/cgroup").join(path));
        assert!(
            found
                .iter()
                .map(|dir| dir.components().as_path())
                .eq(expected.iter().map(|path| path.components().as_path())),
            "{found:?}"
        );
        assert!(dirs("", mounts).is_empty() && dirs("0::/a", "").is_empty());
    }

    #[test]
    fn the_innermost_group_with_a_count_of_kills_tells_before_the_host() {
        let dir = tempfile::tempdir().expect("a directory");
        let host = dir.path().join("vmstat");
        fs::write(&host, "nr_free_pages 12\ndrop_slab 0\noom_kill 3\n").expect("a file");
        let [without, inner, outer] = ["without", "inner", "outer"].map(|name| {
            let group = dir.path().join(name);
            fs::create_dir(&group).expect("a directory");
            group
        });
        fs::write(inner.join("memory.events"), "oom 1\noom_kill 1\n").expect("a file");
        fs::write(outer.join("memory.events"), "oom 2\noom_kill 2\n").expect("a file");

        assert_eq!(kills(std::slice::from_ref(&without), &host), Some(3));
        assert_eq!(kills(&[without.clone(), inner, outer], &host), Some(1));
        assert_eq!(kills(&[without], &dir.path().join("absent")), None);
    }

    #[test]
    fn the_values_of_a_group_are_read() {
        let dir = tempfile::tempdir().expect("a directory");
        let dir = dir.path();
        let write = |name: &str, text: &str| fs::write(dir.join(name), text).expect("a file");
        let read = || [tasks(dir), memory(dir)].map(|it| it.map(|it| (it.limit, it.used)));
        assert_eq!(read(), [None, None]);

        write("pids.max", "max\n");
        write("pids.current", "7\n");
        write("memory.max", "max\n");
        write("memory.current", "5000\n");
        assert_eq!(read(), [None, None]);

        write("pids.max", "50\n");
        write("memory.max", "9000\n");
        write(
            "memory.stat",
            "anon 1\nfile 900\ninactive_file 300\nactive_file 200\n",
        );
        assert_eq!(read(), [Some((50, 7)), Some((9000, 4500))]);
        assert_eq!(kills_in(dir), None);

        write("memory.events", "oom 4\noom_kill 3\n");
        assert_eq!(memory(dir).expect("a limit").n_killed(), 3);
    }

    #[test]
    fn a_group_of_version_1_without_a_limit_has_none() {
        let dir = tempfile::tempdir().expect("a directory");
        let write = |name, text| fs::write(dir.path().join(name), text).expect("a file");
        let read = || memory(dir.path()).map(|group| (group.limit, group.used));
        write("memory.usage_in_bytes", "5000\n");

        // What the kernel shows by default: the largest number of bytes in whole pages.
        write("memory.limit_in_bytes", "9223372036854771712\n");
        assert_eq!(read(), None);

        write("memory.limit_in_bytes", "9000\n");
        write(
            "memory.stat",
            "total_inactive_file 300\ntotal_active_file 200\n",
        );
        assert_eq!(read(), Some((9000, 4500)));
    }
}
