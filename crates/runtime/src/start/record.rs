//! What a PE tells all others when it starts, and what the addresses in the records of all PEs say.
//!
//! Equal records of consecutive PEs are sent once, so a record has a value that differs from PE to
//! PE only if another PE needs it.

use super::identify::Place;
use core::ffi::c_int;
use rushmem_bootstrap::Records;
use rushmem_collectives::choice::{RowOrigin, Table};
use rushmem_heap::ReservedAt;
use rushmem_pe::constants::SHMEM_THREAD_MULTIPLE;
use rushmem_pe::digest::{digest, digest_of_bytes};
use rushmem_pe::memory::statics;
use rushmem_pe::settings::{Settings, Statistics};
use rushmem_transport::Pe;
use serde::{Deserialize, Serialize};

/// The record of one PE. `agree` compares a new field if it must be equal on all PEs or decides
/// something, and `simulated` has a member that lies about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct StartupRecord {
    pub(super) symmetric_size: u64,
    /// The value of `SHMEM_HUGE_PAGES`.
    pub(super) huge_pages: String,
    /// The value of `SHMEM_CHECK`, on which the places of blocks in the heap depend.
    pub(super) check: String,
    /// True if the PE counts its operations; all PEs exchange the counters at the last finalize.
    pub(super) is_counted: bool,
    /// True if the PE records a trace; all PEs compare their clocks for it.
    pub(super) is_traced: bool,
    /// The value of `SHMEM_ONNODE`, on which the nodes of the job depend.
    pub(super) is_onnode: bool,
    /// The value of `SHMEM_VIRTUAL_NODES`, on which the nodes depend, too.
    pub(super) virtual_nodes: String,
    /// A digest of the algorithms of collectives that the user forces.
    pub(super) forced: u64,
    /// A digest of the rows in the user's file of algorithms of collectives.
    pub(super) tuned: u64,
    /// A digest of the network stack: the same on PEs that reach each other over loopback.
    pub(super) stack: u64,
    /// The job's secret; `None` from all PEs but PE 0.
    pub(super) secret: Option<[u8; 32]>,
    pub(super) cpus: Cpus,
    /// The thread level that the PE requested.
    pub(super) thread_level: c_int,
    /// A digest of the layout of the program's static data.
    pub(super) statics: u64,
    /// A digest that differs if the program's constants differ.
    pub(super) constants: u64,
    /// The offset in bytes of the PE's static data in its slot of the node's memory, or in the file
    /// that the PE has for them alone; `None` if they are not in shared memory.
    pub(super) statics_in_slot: Option<u64>,
    /// The address of the static data in the PE's process; `None` unless the log of PE 0 shows it.
    pub(super) statics_start: Option<usize>,
    /// The addresses at which the PE could reserve room for its heap.
    pub(super) reserved: Vec<usize>,
    /// The reserved pages for the heaps of the machine, if this PE has reserved them.
    pub(super) reserved_pages: Option<ReservedAt>,
}

impl StartupRecord {
    /// Returns true if several threads of the PE may be in the library at once.
    pub(super) fn has_threads(&self) -> bool {
        self.thread_level >= SHMEM_THREAD_MULTIPLE
    }
}

/// The values of a record that the process has found out, apart from its settings.
#[derive(Clone, Debug)]
pub(super) struct OwnValues {
    pub(super) secret: [u8; 32],
    pub(super) forced: u64,
    pub(super) tuned: u64,
    pub(super) stack: u64,
    pub(super) cpus: Cpus,
    pub(super) statics: u64,
    pub(super) constants: u64,
    pub(super) statics_in_slot: Option<u64>,
    pub(super) statics_start: Option<usize>,
    pub(super) reserved: Vec<usize>,
    pub(super) reserved_pages: Option<ReservedAt>,
}

impl OwnValues {
    /// Returns the values of this process, except the secret and what it has reserved.
    pub(super) fn of_process(algorithms: &Table) -> OwnValues {
        OwnValues {
            secret: [0; 32],
            forced: digest_of_forced(algorithms),
            tuned: digest_of_tuned(algorithms),
            stack: network_stack(),
            cpus: usable_cpus(),
            statics: digest(statics::own().fingerprint()),
            constants: digest_of_bytes(statics::own().identity_of_constants()),
            statics_in_slot: statics::remapped().map(|remapped| remapped.in_slot),
            statics_start: prints_addresses().then(|| statics::own().start()),
            reserved: Vec::new(),
            reserved_pages: None,
        }
    }

    /// Returns the record of the PE at a place, with these settings.
    pub(super) fn record(
        self,
        place: &Place,
        settings: &Settings,
        thread_level: c_int,
    ) -> StartupRecord {
        StartupRecord {
            symmetric_size: settings.symmetric_size,
            huge_pages: settings.huge_pages.to_string(),
            check: settings.check.to_string(),
            is_counted: settings.statistics != Statistics::No,
            is_traced: settings.trace.is_some(),
            is_onnode: settings.onnode,
            virtual_nodes: settings.virtual_nodes.to_string(),
            forced: self.forced,
            tuned: self.tuned,
            stack: self.stack,
            secret: (place.me == Pe(0)).then_some(self.secret),
            cpus: self.cpus,
            thread_level,
            statics: self.statics,
            constants: self.constants,
            statics_in_slot: self.statics_in_slot,
            statics_start: self.statics_start,
            reserved: self.reserved,
            reserved_pages: self.reserved_pages,
        }
    }
}

/// Returns a digest of the algorithms that settings force.
pub(super) fn digest_of_forced(table: &Table) -> u64 {
    digest_of_rows(table, |origin| origin == RowOrigin::Forced)
}

/// Returns a digest of the rows of the file.
pub(super) fn digest_of_tuned(table: &Table) -> u64 {
    digest_of_rows(table, |origin| matches!(origin, RowOrigin::File(_)))
}

fn digest_of_rows(table: &Table, is_included: impl Fn(RowOrigin) -> bool) -> u64 {
    let rows = table.rows().filter(|&(_, origin)| is_included(origin));
    digest_of_bytes(rows.flat_map(|(row, _)| (row + "\n").into_bytes()))
}

/// Returns a digest that identifies the network stack of this process among those of all machines
/// and network namespaces.
fn network_stack() -> u64 {
    let boot = std::fs::read("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let namespace = std::fs::read_link("/proc/self/ns/net").unwrap_or_default();
    let bytes = boot.iter().chain(namespace.as_os_str().as_encoded_bytes());
    digest_of_bytes(bytes.copied())
}

/// The CPUs that a PE may use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Cpus {
    /// The number of CPUs that the PE may use at once, by affinity and cgroup quota.
    pub(super) at_once: usize,
    /// The CPUs of its affinity: CPU `i` is bit `i % 64` of word `i / 64`.
    pub(super) mask: Vec<u64>,
}

/// Returns the CPUs that this process may use.
pub(super) fn usable_cpus() -> Cpus {
    let at_once = std::thread::available_parallelism().map_or(1, usize::from);

    // If the affinity cannot be read, the mask stays empty, and `at_once` alone counts.
    let mut mask = Vec::new();
    if let Ok(set) = rustix::thread::sched_getaffinity(None) {
        for cpu in (0..rustix::thread::CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)) {
            mask.resize(mask.len().max(cpu / 64 + 1), 0u64);
            mask[cpu / 64] |= 1 << (cpu % 64);
        }
    }
    Cpus { at_once, mask }
}

/// Returns the address of the heap that all PEs can use; `None` if there is no common one.
pub(super) fn common_heap_address(records: &Records<StartupRecord>) -> Option<usize> {
    let mut addresses = records[0].reserved.iter().copied();
    addresses.find(|address| pe_without(*address, records).is_none())
}

/// Returns the first PE that could not reserve the range at an address.
fn pe_without(address: usize, records: &Records<StartupRecord>) -> Option<u32> {
    records.position(|record| !record.reserved.contains(&address))
}

/// Returns true if [`report_addresses`] prints addresses. Both functions are in one module, since
/// `SHMEM_DEBUG` may select messages by their module.
pub(super) fn prints_addresses() -> bool {
    rushmem_system::log::is_wanted!(DEBUG)
}

/// Logs on PE 0 whether the symmetric heap and the static data have the same address on all PEs. A
/// heap that has not is reported at level `info`, anything else at level `debug`.
pub(super) fn report_addresses(me: Pe, records: &Records<StartupRecord>, heap: Option<usize>) {
    if me != Pe(0) || records.n_pes() == 1 {
        return;
    }

    match heap {
        Some(address) => {
            rushmem_system::log::debug!("the symmetric heap begins at {address:#x} on all PEs")
        }
        None => rushmem_system::log::info!(
            "the symmetric heap begins at different addresses on the PEs: {}",
            obstacle(records)
        ),
    }

    let Some(statics) = records[0].statics_start else {
        return;
    };
    // A PE whose log is off sends no address.
    let other = records.position(|record| {
        record
            .statics_start
            .is_some_and(|address| address != statics)
    });
    if let Some(pe) = other
        && let Some(there) = records[pe].statics_start
    {
        rushmem_system::log::debug!(
            "the static data begin at {statics:#x} on PE 0 and at {there:#x} on PE {pe}: `oshrun --no-aslr` \
             gives them one address"
        );
    } else {
        rushmem_system::log::debug!("the static data begin at {statics:#x} on all PEs");
    }
}

/// Explains why no range is free on all PEs.
fn obstacle(records: &Records<StartupRecord>) -> String {
    if let Some(pe) = records.position(|record| record.reserved.is_empty()) {
        return format!("PE {pe} could reserve no range of addresses");
    }

    let first = records[0].reserved[0];
    let pe = pe_without(first, records).expect("otherwise the first range would be free on all");
    format!("PE {pe} has other memory at {first:#x}, and no other range is free on all")
}
