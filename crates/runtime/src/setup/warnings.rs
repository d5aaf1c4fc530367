//! What PE 0 prints at an initialization, and a warning of too little memory.

use super::mistakes;
use crate::base::constants::{SHMEM_MAJOR_VERSION, SHMEM_MINOR_VERSION, SHMEM_VENDOR_STRING};
use crate::base::settings::{self, Settings};
use crate::base::warning::warning;
use crate::memory::available;
use rushmem_transport::Provider;

/// Prints a warning of each setting without effect, and the version and all settings if they are
/// requested.
pub(super) fn print(chosen: &Settings, providers: &[Provider]) {
    let of_providers = providers.iter().flat_map(|provider| provider.settings);
    for warning in mistakes::found(of_providers.clone()) {
        warning!("{warning}");
    }
    if chosen.version {
        println!("{SHMEM_VENDOR_STRING} (OpenSHMEM {SHMEM_MAJOR_VERSION}.{SHMEM_MINOR_VERSION})");
    }
    if chosen.info {
        for row in settings::ALL.iter().chain(of_providers) {
            println!("{}: {}; now {}", row.names(), row.description(), settings::state(row));
        }
    }
}

/// Warns if more memory is requested than is available: pages are allocated on first touch, so the
/// mapping succeeds.
pub(super) fn of_shortage(symmetric_size: u64, n_local: u32) {
    let requested = symmetric_size.saturating_mul(n_local.into());
    if let Some(available) = available::bytes().filter(|&available| requested > available) {
        // Cause: the heaps of all PEs of the host are larger than its free memory. Remedy: make
        // SHMEM_SYMMETRIC_SIZE smaller, or use fewer PEs for each host.
        warning!(
            "SHMEM_SYMMETRIC_SIZE asks for {requested} bytes on this node ({n_local} PEs), of \
             which {available} are available; a program that touches more will be killed"
        );
    }
}
