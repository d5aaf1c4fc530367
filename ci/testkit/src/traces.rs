//! Finds files and sockets that a job has left behind. [`Job`](crate::Job) itself finds processes
//! that it has left.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Parts of the names that Rushmem gives to its files and sockets.
const OURS: [&str; 3] = ["rushmem", "shmem", "oshrun"];

/// The time after which a file or socket that still exists counts as left behind. Most other jobs
/// on this machine have removed theirs by then.
const STAYS: Duration = Duration::from_secs(10);

/// The names of what jobs may leave at one moment: their files in directories that all processes
/// of the machine share, their sockets, and all files of a temporary directory.
///
/// The jobs take that directory as their `TMPDIR`. What other tests have in `/tmp` meanwhile is not
/// theirs, even where its name is Rushmem's.
#[derive(Debug)]
pub struct Traces {
    temporary: PathBuf,
    names: BTreeSet<String>,
}

impl Traces {
    /// Lists the files and sockets that exist now, with those of this temporary directory.
    pub fn now(temporary: &Path) -> Self {
        let mut names = BTreeSet::new();
        for place in ["/dev/shm", "/var/tmp", "/run"] {
            names.extend(names_in(Path::new(place)).filter(|name| is_ours(name)));
        }
        names.extend(names_in(temporary));

        let sockets = fs::read_to_string("/proc/net/unix").unwrap_or_default();
        // The first line has the titles of the columns, of which the last is the name.
        for line in sockets.lines().skip(1) {
            if let Some(name) = line.split_whitespace().nth(7)
                && is_ours(name)
            {
                names.insert(format!("socket {name}"));
            }
        }

        Self {
            temporary: temporary.to_owned(),
            names,
        }
    }

    /// Returns the names that exist now and still exist after `STAYS`, but are not in this list.
    /// Returns earlier if there are none.
    pub fn new_since(&self) -> Vec<String> {
        let end = Instant::now() + STAYS;
        let now = Self::now(&self.temporary);
        let mut new: Vec<String> = now.names.difference(&self.names).cloned().collect();
        while !new.is_empty() && Instant::now() < end {
            sleep(Duration::from_millis(100));
            let now = Self::now(&self.temporary);
            new.retain(|name| now.names.contains(name));
        }
        new
    }
}

/// Returns the paths of the files in a directory, none if the machine lacks the directory.
fn names_in(dir: &Path) -> impl Iterator<Item = String> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    entries.map(|entry| entry.path().display().to_string())
}

fn is_ours(name: &str) -> bool {
    OURS.iter().any(|word| name.contains(word))
}
