//! Finds what a job has left in the file system or among the sockets; every job looks for processes
//! anyway.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Names that a job of ours would choose.
const OURS: [&str; 3] = ["rushmem", "shmem", "oshrun"];

/// So long a trace has to stay to be left behind: other jobs of this machine make some, which go
/// with them.
const STAYS: Duration = Duration::from_secs(10);

/// The files in shared places and the sockets with names that could be ours, at one moment.
#[derive(Debug, PartialEq, Eq)]
pub struct Traces(BTreeSet<String>);

impl Traces {
    /// Returns what is there now.
    pub fn now() -> Self {
        let mut found = BTreeSet::new();
        for place in ["/dev/shm", "/tmp", "/var/tmp", "/run"] {
            found.extend(names_in(Path::new(place)));
        }
        let sockets = fs::read_to_string("/proc/net/unix").unwrap_or_default();
        let named = sockets.lines().skip(1).filter_map(|line| line.split_whitespace().nth(7));
        found.extend(named.filter(|name| is_ours(name)).map(|name| format!("socket {name}")));
        Self(found)
    }

    /// Returns what is there now, was not then, and stays.
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

fn names_in(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| is_ours(name))
        .map(|name| dir.join(name).display().to_string())
        .collect()
}

fn is_ours(name: &str) -> bool {
    OURS.iter().any(|word| name.contains(word))
}
