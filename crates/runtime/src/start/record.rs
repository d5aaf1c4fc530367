//! The record that each PE sends to all others when it joins the job: what must be equal, and what
//! only this PE knows.
//!
//! Equal records take no room on their way, so a record has a value of its own only if another PE
//! needs it.

use super::cpus::Cpus;
use crate::job::digest;
use core::ffi::c_int;
use rushmem_heap::ReservedAt;
use rushmem_wire::{Error, RECORD};
use serde::{Deserialize, Serialize};

/// One PE's record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct StartupRecord {
    pub(super) symmetric_size: u64,
    /// The value of `SHMEM_HUGE_PAGES`.
    pub(super) huge_pages: String,
    /// The value of `SHMEM_CHECK`, with which blocks of the heap may lie at other places.
    pub(super) check: String,
    /// True if it counts what it sends, for which all meet at the last finalize.
    pub(super) statistics: bool,
    /// True if it records a trace, for which all compare their clocks.
    pub(super) traced: bool,
    /// A digest of the algorithms of collectives that the user forces.
    pub(super) forced: u64,
    /// A digest of the rows for collectives that the user's file has.
    pub(super) tuned: u64,
    /// The network stack: the same on PEs that reach each other over loopback.
    pub(super) stack: u64,
    /// The job's secret, from PE 0.
    pub(super) secret: Option<[u8; 32]>,
    pub(super) cpus: Cpus,
    /// The thread level that it requested.
    pub(super) thread_level: c_int,
    /// A digest of the program's layout.
    pub(super) statics: u64,
    /// The start of its static data in its slot of its node's memory, or in its file, if they are
    /// in shared memory.
    pub(super) statics_in_slot: Option<u64>,
    /// The start of its static data in its process, if it is shown.
    pub(super) statics_start: Option<usize>,
    /// The addresses at which it could reserve room for its heap.
    pub(super) reserved: Vec<usize>,
    /// The reserved pages for the heaps of its node, if it has made some.
    pub(super) reserved_pages: Option<ReservedAt>,
}

impl StartupRecord {
    pub(super) fn encode(&self) -> Vec<u8> {
        rushmem_wire::encode(RECORD, self)
    }

    /// # Errors
    /// When another version has written it.
    pub(super) fn decode(bytes: &[u8]) -> Result<StartupRecord, Error> {
        rushmem_wire::decode(RECORD, bytes)
    }
}

/// Identifies this process's network stack among those of other machines and network namespaces.
pub(super) fn stack() -> u64 {
    let boot = std::fs::read("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let namespace = std::fs::read_link("/proc/self/ns/net").unwrap_or_default();
    let bytes = boot.iter().chain(namespace.as_os_str().as_encoded_bytes());
    digest(&bytes.map(|&byte| u64::from(byte)).collect::<Vec<u64>>())
}
