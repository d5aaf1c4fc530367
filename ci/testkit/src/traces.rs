//! Finds files and sockets that a job has left behind. [`Job`](crate::Job) itself finds processes
//! that it has left.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Parts of the names that Rushmem gives to its files and sockets.
const OURS: [&str; 3] = ["rushmem", "shmem", "oshrun"];

/// The time after which a file or socket that still exists counts as left behind. Most other jobs
/// on this machine have removed theirs by then.
const STAYS: Duration = Duration::from_secs(10);

/// The names of the files in shared directories and of the sockets that may be Rushmem's, at one
/// moment.
#[derive(Debug, PartialEq, Eq)]
pub struct Traces(BTreeSet<String>);

impl Traces {
    /// Lists the files and sockets that exist now.
    pub fn now() -> Self {
        let mut found = BTreeSet::new();
        for place in ["/dev/shm", "/tmp", "/var/tmp", "/run"] {
            found.extend(names_in(Path::new(place)));
        }

        let sockets = fs::read_to_string("/proc/net/unix").unwrap_or_default();
        // The first line has the titles of the columns, of which the last is the name.
        for line in sockets.lines().skip(1) {
            if let Some(name) = line.split_whitespace().nth(7)
                && is_ours(name)
            {
                found.insert(format!("socket {name}"));
            }
        }
        Self(found)
    }

    /// Returns the names that exist now and still exist after `STAYS`, but are not in this list.
    /// Returns earlier if there are none.
    pub fn new_since(&self) -> Vec<String> {
        let end = Instant::now() + STAYS;
        let mut new: Vec<String> = Self::now().0.difference(&self.0).cloned().collect();
        while !new.is_empty() && Instant::now() < end {
            sleep(Duration::from_millis(100));
            let now = Self::now();
            new.retain(|name| now.0.contains(name));
        }
        new
    }
}

/// Returns the paths of the files in a directory that may be Rushmem's.
fn names_in(dir: &Path) -> Vec<String> {
    let mut names = Vec::new();
    // Not every machine has all of the directories.
    let Ok(entries) = fs::read_dir(dir) else {
        return names;
    };
    for entry in entries.flatten() {
        let name = entry.file_name();
        if is_ours(&name.to_string_lossy()) {
            names.push(dir.join(name).display().to_string());
        }
    }
    names
}

fn is_ours(name: &str) -> bool {
    OURS.iter().any(|word| name.contains(word))
}
