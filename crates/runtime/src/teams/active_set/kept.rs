//! The teams of active sets that a PE keeps for later calls on the same sets.

use crate::teams::team::Team;
use core::ffi::c_int;
use rushmem_system::lock::{read, write};
use std::collections::BTreeMap;
use std::sync::{Arc, RwLock, RwLockWriteGuard};

/// The key of a team: two calls with the same key use the same team.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ActiveSetKey {
    /// `PE_start`, `logPE_stride` and `PE_size`.
    pub(super) triplet: [c_int; 3],
    /// The address of pSync in this process, if several threads may call at once.
    pub(super) psync: Option<usize>,
}

/// The teams that are kept, which are also in the registry.
#[derive(Default)]
pub(crate) struct KeptTeams(RwLock<BTreeMap<ActiveSetKey, Arc<Team>>>);

impl KeptTeams {
    /// Returns the kept team with this key, if there is one.
    pub(super) fn get(&self, key: ActiveSetKey) -> Option<Arc<Team>> {
        read(&self.0).get(&key).cloned()
    }

    /// Forgets the teams that were kept, in finalize.
    pub(crate) fn clear(&self) {
        self.write().clear();
    }

    pub(super) fn write(&self) -> RwLockWriteGuard<'_, BTreeMap<ActiveSetKey, Arc<Team>>> {
        write(&self.0)
    }
}
