//! The limits of the control group of this process and of its ancestors: version 2, or the
//! controllers pids and memory of version 1.

use std::fs;
use std::path::{Path, PathBuf};

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
    let read = |path| fs::read_to_string(path).unwrap_or_default();
    let folders = folders(&read("/proc/self/cgroup"), &read("/proc/self/mountinfo"));
    folders.iter().flat_map(|folder| bounds(folder)).collect()
}

/// The folders of the groups, in each hierarchy the innermost first.
fn folders(groups: &str, mounts: &str) -> Vec<PathBuf> {
    let mut folders = Vec::new();
    for line in groups.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else { continue };
        let Some((root, at)) = mounts.lines().find_map(|mount| hierarchy(mount, controllers))
        else {
            continue;
        };
        // Groups above the root of the mount are not visible from here.
        let below = Path::new(path).strip_prefix(root).unwrap_or(Path::new(""));
        folders.extend(below.ancestors().map(|below| at.join(below)));
    }
    folders
}

/// Parses a line of /proc/self/mountinfo. Returns root and mount point if it is the hierarchy of
/// one of these controllers that has bounds; no controllers mean version 2.
fn hierarchy<'a>(mount: &'a str, controllers: &str) -> Option<(&'a Path, &'a Path)> {
    let (front, back) = mount.split_once(" - ")?;
    let mut front = front.split(' ').skip(3);
    let (root, at) = (front.next()?, front.next()?);
    let mut back = back.split(' ');
    let (kind, options) = (back.next()?, back.nth(1)?);
    let is_wanted = match controllers {
        "" => kind == "cgroup2",
        some => {
            let of_interest = |name: &&str| ["pids", "memory"].contains(name);
            kind == "cgroup"
                && some
                    .split(',')
                    .filter(of_interest)
                    .any(|name| options.split(',').any(|option| option == name))
        }
    };
    is_wanted.then_some((Path::new(root), Path::new(at)))
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
        let found = folders(groups, MOUNTS);
        assert!(found.iter().map(|folder| folder.components().as_path()).eq(expected), "{found:?}");
    }

    #[test]
    fn groups_of_version_2_are_found() {
        let mounts = "30 23 0:26 / /sys/fs/cgroup rw shared:9 - cgroup2 cgroup2 rw,nsdelegate\n";
        let found = folders("0::/user.slice/job\n", mounts);
        let expected = ["user.slice/job", "user.slice", ""];
        let expected = expected.map(|path| Path::new("/sys/fs/cgroup").join(path));
        assert!(
            found
                .iter()
                .map(|folder| folder.components().as_path())
                .eq(expected.iter().map(|path| path.components().as_path())),
            "{found:?}"
        );
        assert!(folders("", mounts).is_empty() && folders("0::/a", "").is_empty());
    }

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
