//! The second step of a start: each PE reserves addresses and pages for its heap, and sends a
//! record to all others: values that must be equal, and values that only this PE knows.
//!
//! Equal records of consecutive PEs are sent once, so a record has a value that differs from PE to
//! PE only if another PE needs it.
//!
//! The addresses of symmetric objects are the same on all PEs where that is possible, so that
//! programs can keep pointers in symmetric memory. Each PE tries to reserve a few ranges, and all
//! use the first one that all PEs could reserve. The address of static data is where the kernel
//! loads the program.

use super::error::StartError;
use super::identify::{Identified, Place};
use core::ffi::c_int;
use rushmem_bootstrap::Records;
use rushmem_collectives::choice::{RowOrigin, Table};
use rushmem_heap::huge_pages::PageSize;
use rushmem_heap::{Layout, Reservation, ReservedAt, ReservedPages};
use rushmem_pe::constants::SHMEM_THREAD_MULTIPLE;
use rushmem_pe::digest::{digest, digest_of_bytes};
use rushmem_pe::memory::areas::{Areas, RECEIVE_BUFFER_SETS};
use rushmem_pe::memory::{huge_pages, statics};
use rushmem_pe::settings::{Settings, Statistics};
use rushmem_system::codec::{decode, encode};
use rushmem_transport::Pe;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::convert::Infallible;

/// A PE that knows the records of all PEs.
pub(super) struct Exchanged {
    pub(super) identified: Identified,
    pub(super) plan: MemoryPlan,
    pub(super) reserved: Vec<Reservation>,
    pub(super) pages: Option<ReservedPages>,
    pub(super) records: Records<StartupRecord>,
}

impl Identified {
    /// Exchanges the records of all PEs.
    ///
    /// # Errors
    /// If a PE has another build, or its record is damaged.
    pub(super) fn exchange(mut self) -> Result<Exchanged, StartError> {
        rushmem_system::log::debug!("start: exchanges the records of all PEs");
        let n_pes = self.place.n_pes;
        let n_local = self.place.n_local;
        let local = self.place.local;

        let mut secret = [0; 32];
        getrandom::fill(&mut secret).map_err(StartError::NoSecret)?;

        let plan = MemoryPlan::of_pe(&self.settings, n_pes, self.thread_level);
        let mut reserved = Vec::new();
        let mut pages = None;
        if let Some(layout) = &plan.layout {
            reserved = Reservation::all(layout, n_local, local);
            pages = huge_pages::reserve(&self.settings, layout, n_local, local);
        }

        let own = OwnValues {
            secret,
            reserved: reserved.iter().map(Reservation::slice).collect(),
            reserved_pages: pages.as_ref().and_then(|pages| pages.location().ok()),
            ..OwnValues::of_process(&self.algorithms)
        };
        let own = own.record(&self.place, &self.settings, self.thread_level);
        let records = self.build.exchange(&mut self.session, &encode(&own))?;
        let records = decoded(records)?;

        if !have_one_plan(&records) {
            // Some PEs have planned larger areas than others. All use the smaller ones, for which
            // the ranges and pages were not reserved.
            return Ok(Exchanged {
                plan: MemoryPlan::new(&self.settings, n_pes, 1),
                identified: self,
                reserved: Vec::new(),
                pages: None,
                records: without_reservations(records),
            });
        }

        if are_pages_reserved(&records) {
            pages = self.share_pages(pages, &plan, &records)?;
        }
        Ok(Exchanged {
            identified: self,
            plan,
            reserved,
            pages,
            records,
        })
    }

    /// Returns the reserved pages for the heaps of this machine, if all of its PEs can open them.
    /// The first PE of each machine has reserved them, and the others open them.
    fn share_pages(
        &mut self,
        own: Option<ReservedPages>,
        plan: &MemoryPlan,
        records: &Records<StartupRecord>,
    ) -> Result<Option<ReservedPages>, StartError> {
        let mut pages = own;
        if pages.is_none()
            && let Some(reserved) = pages_of_machine(&self.place, records)
            && let Some(layout) = &plan.layout
        {
            match ReservedPages::open(layout, reserved) {
                Ok(opened) => pages = Some(opened),
                Err(why) => rushmem_system::log::debug!(%why, "cannot open reserved pages"),
            }
        }

        let has_opened = self.session.exchange(&[u8::from(pages.is_some())])?;
        Ok(pages.filter(|_| machine_has_opened(&self.place, &has_opened)))
    }
}

/// The memory of a PE as it is planned before it is mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MemoryPlan {
    pub(super) areas: Areas,
    /// `None` if the heap does not fit into an address space.
    pub(super) layout: Option<Layout>,
}

impl MemoryPlan {
    /// Plans the memory of a PE of a job whose PEs all have its thread level. If threads of a PE
    /// may be in several collectives at once, there are several sets of receive buffers, which
    /// belong to different teams.
    pub(super) fn of_pe(settings: &Settings, n_pes: u32, thread_level: c_int) -> MemoryPlan {
        if thread_level >= SHMEM_THREAD_MULTIPLE {
            MemoryPlan::new(settings, n_pes, RECEIVE_BUFFER_SETS)
        } else {
            MemoryPlan::new(settings, n_pes, 1)
        }
    }

    pub(super) fn new(settings: &Settings, n_pes: u32, receive_buffer_sets: usize) -> MemoryPlan {
        // A heap of small pages fits into the layout for huge ones, too. That costs addresses only.
        let page = settings.huge_pages.page_size().unwrap_or(PageSize::Mib2);
        let areas = Areas::new(n_pes, receive_buffer_sets);
        MemoryPlan {
            areas,
            layout: Layout::new(settings.symmetric_size, areas.nbytes(), page),
        }
    }
}

/// Decodes what all PEs have sent.
pub(super) fn decoded<T: DeserializeOwned>(sent: Records) -> Result<Records<T>, StartError> {
    sent.try_map(|bytes| decode(&bytes))
        .map_err(|(pe, why)| StartError::Data { pe, why })
}

/// Returns true if all PEs have planned their memory alike.
pub(super) fn have_one_plan(records: &Records<StartupRecord>) -> bool {
    let have_threads = records[0].has_threads();
    records
        .position(|record| record.has_threads() != have_threads)
        .is_none()
}

/// Returns the records as if no PE had reserved addresses or pages.
pub(super) fn without_reservations(records: Records<StartupRecord>) -> Records<StartupRecord> {
    let Ok(records) = records.try_map(|record| {
        Ok::<_, Infallible>(StartupRecord {
            reserved: Vec::new(),
            reserved_pages: None,
            ..record
        })
    });
    records
}

/// Returns true if the PEs of some machine have reserved pages. Then all PEs of the job exchange
/// whether they can open those of their machine.
pub(super) fn are_pages_reserved(records: &Records<StartupRecord>) -> bool {
    records
        .position(|record| record.reserved_pages.is_some())
        .is_some()
}

/// Returns the pages that the first PE of this machine has reserved, if it has.
pub(super) fn pages_of_machine(
    place: &Place,
    records: &Records<StartupRecord>,
) -> Option<ReservedAt> {
    let first = place.on_machine().next()?;
    records[first].reserved_pages
}

/// Returns true if all PEs of this machine have sent that they have opened the reserved pages.
pub(super) fn machine_has_opened(place: &Place, has_opened: &Records) -> bool {
    place.on_machine().all(|pe| has_opened[pe] == [1])
}

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
    /// The job's secret, from PE 0.
    pub(super) secret: Option<[u8; 32]>,
    pub(super) cpus: Cpus,
    /// The thread level that the PE requested.
    pub(super) thread_level: c_int,
    /// A digest of the layout of the program's static data.
    pub(super) statics: u64,
    /// A digest that differs if the program's constants differ.
    pub(super) constants: u64,
    /// The start of the PE's static data in its slot of the node's memory, or in its file; `None`
    /// if they are not in shared memory.
    pub(super) statics_in_slot: Option<u64>,
    /// The start of the static data in the PE's process, if the log of PE 0 shows it.
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
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
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
