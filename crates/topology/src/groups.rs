//! The control groups of this process, which limit its memory and processes.

use std::fs;
use std::path::{Path, PathBuf};

/// The controllers whose folders are of interest.
const CONTROLLERS: [&str; 2] = ["pids", "memory"];

/// The folders of the groups that contain this process, in each hierarchy the innermost first.
pub fn control_groups() -> Vec<PathBuf> {
    let read = |path| fs::read_to_string(path).unwrap_or_default();
    folders(&read("/proc/self/cgroup"), &read("/proc/self/mountinfo"))
}

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
            let of_interest = |name: &&str| CONTROLLERS.contains(name);
            kind == "cgroup"
                && some
                    .split(',')
                    .filter(of_interest)
                    .any(|name| options.split(',').any(|option| option == name))
        }
    };
    is_wanted.then_some((Path::new(root), Path::new(at)))
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
}
