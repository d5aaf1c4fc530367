//! The lines that PE 0 prints at an initialization.

use super::mistakes;
use crate::call::warning::warning;
use crate::constants::{SHMEM_MAJOR_VERSION, SHMEM_MINOR_VERSION, SHMEM_VENDOR_STRING};
use crate::settings::{self, Settings};
use rushmem_transport::Provider;

/// Prints a warning of each setting without effect and of an MPI that cannot start any more, and on
/// request the settings.
pub(super) fn print(chosen: &Settings, providers: &[Provider]) {
    let of_providers = providers.iter().flat_map(|provider| provider.settings);
    for warning in mistakes::found(of_providers.clone()) {
        warning!("{warning}");
    }
    if rushmem_bootstrap::is_open_mpi_shut_out() {
        // Cause: `shmem_init` comes before `MPI_Init`.
        warning!(
            "this program has Open MPI 5, whose MPI_Init fails after shmem_init; call MPI_Init first"
        );
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
