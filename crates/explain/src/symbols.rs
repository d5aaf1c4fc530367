//! Adds the names of the static variables that snapshots mention.

use crate::snapshot::{PeSnapshot, StaticSymbol};
use crate::status::{AwaitedObject, SymmetricLocation};
use rushmem_locate::Variables;
use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::os::unix::fs::MetadataExt;

/// The size of a lock.
const LOCK_BYTES: u64 = 8;

/// The size of most elements that PEs write.
const WORD_BYTES: u64 = 8;

/// Adds the names of the static variables that the statuses and writes of the PEs mention. A
/// program that many PEs execute is read once.
pub(crate) fn add<'a>(snapshots: impl Iterator<Item = (&'a mut PeSnapshot, Option<u32>)>) {
    // By device and inode number.
    let mut programs: HashMap<(u64, u64), Variables> = HashMap::new();
    for (snapshot, pid) in snapshots {
        let Some(pid) = pid else { continue };
        let addresses = static_addresses(snapshot);
        if addresses.is_empty() {
            continue;
        }

        // A PE that has ended meanwhile, or whose program may not be read, has no names.
        let Ok(file) = File::open(format!("/proc/{pid}/exe")) else {
            continue;
        };
        let Ok(metadata) = file.metadata() else {
            continue;
        };

        let variables = programs
            .entry((metadata.dev(), metadata.ino()))
            .or_insert_with(|| Variables::of(file));
        snapshot.symbols.clear();
        for (address, nbytes) in addresses {
            if let Some(name) = variables.part(address, nbytes) {
                snapshot.symbols.push(StaticSymbol { address, name });
            }
        }
    }
}

/// Returns the addresses in static variables that a snapshot mentions, and the number of bytes that
/// are accessed at each.
fn static_addresses(snapshot: &PeSnapshot) -> BTreeMap<u64, u64> {
    let mut addresses = BTreeMap::new();
    let mut add = |location: &SymmetricLocation, nbytes: u64| {
        if let SymmetricLocation::Static { address } = location {
            addresses.entry(*address).or_insert(nbytes);
        }
    };

    if let Some(status) = &snapshot.status {
        for lock in &status.held_locks {
            add(lock, LOCK_BYTES);
        }
        for wait in &status.waits {
            match &wait.subject {
                AwaitedObject::Words(words) => {
                    for word in &words.words {
                        add(&word.location, word.nbytes.into());
                    }
                }
                AwaitedObject::Lock { lock, .. } => add(lock, LOCK_BYTES),
                _ => {}
            }
        }
        if let Some(poll) = &status.poll {
            add(&poll.word, WORD_BYTES);
        }
    }

    for write in snapshot.writes.iter().flatten() {
        // A write of an array is named by its first element.
        add(&write.location, write.nbytes.min(WORD_BYTES));
    }
    addresses
}
