//! The sixth step of a start: the PE describes its job and its predefined teams, and sets what the
//! rest of the library keeps of them for the life of the process. With that, the PE has joined its
//! job, and what an init after the last finalize repeats begins.

use super::agree::MachineCpus;
use super::error::StartError;
use super::identify::Place;
use super::map::Published;
use crate::diagnosis::{polling_calls, watchdog};
use crate::own_pe::{self, OwnPe};
use crate::teams::agreement::PREDEFINED;
use rushmem_bootstrap::NodeMap;
use rushmem_collectives::choice::{ChoiceFacts, Table};
use rushmem_collectives::receive_buffer;
use rushmem_communication::access::endpoints::endpoints;
use rushmem_communication::links::{self, Links};
use rushmem_communication::net::flags::FlagArea;
use rushmem_communication::net::network;
use rushmem_communication::status::{self, machine};
use rushmem_explain::status::Stage;
use rushmem_pe::call::warning;
use rushmem_pe::job::members::Members;
use rushmem_pe::job::{CurrentTable, Job};
use rushmem_pe::memory::address;
use rushmem_pe::memory::images::{Deltas, Images};
use rushmem_transport::progress::cpu_sharing;
use rushmem_transport::{Pe, Segment};
use std::mem::ManuallyDrop;
use std::sync::Mutex;

/// A PE that is part of its job, from the first init on.
pub(super) struct Joined {
    pub(super) pe: &'static OwnPe,
}

impl Published {
    /// Makes the PE, with its job, and sets it as that of the process.
    ///
    /// # Errors
    /// If the launcher is lost.
    pub(super) fn join(self) -> Result<Joined, StartError> {
        rushmem_system::log::debug!("start: describes the job");
        let place = &self.identified.place;
        let cpus = self.agreement.cpus[place.machine as usize];
        cpu_sharing::set_pes_per_cpu(pes_per_cpu(place, cpus));

        let facts = facts(&place.nodes, self.agreement.is_oversubscribed_somewhere);
        let mut algorithms = self.identified.algorithms;
        algorithms.retain_for(&facts);
        if place.me == Pe(0) {
            show_algorithms(&algorithms, &facts);
        }

        let place = self.identified.place;
        let predefined = predefined_members(&place);
        let [heap_deltas, static_deltas] = self.deltas;
        let is_alone_on_node = place.nodes.size(place.nodes.node_of(place.me.0)) == 1;
        let job = Job {
            me: place.me,
            n_pes: place.n_pes,
            nodes: place.nodes,
            has_statics_apart: self.agreement.has_statics_apart,
            needs_transport: self.agreement.needs_transport,
            is_alone_on_node,
            map: address::of_process(),
            images: [
                images_of(Segment::Heap, heap_deltas),
                images_of(Segment::Static, static_deltas),
            ],
            memory: self.memory,
            allocator: Mutex::new(None),
            cpus_per_pe: cpus.per_pe,
            is_oversubscribed: cpus.per_pe == 0,
            is_oversubscribed_somewhere: self.agreement.is_oversubscribed_somewhere,
            has_equal_heap_addresses: self.agreement.heap_address.is_some() || place.n_pes == 1,
            has_equal_constants: self.agreement.has_equal_constants,
            thread_level: self.identified.thread_level,
            has_threads_somewhere: self.agreement.has_threads_somewhere,
            secret: self.agreement.secret,
            is_on_one_stack: self.agreement.is_on_one_stack,
            settings: self.identified.settings,
            algorithms: CurrentTable::new(Box::leak(Box::new(algorithms))),
            membership: Mutex::new(ManuallyDrop::into_inner(self.identified.membership)),
        };

        let internal = images_of(Segment::Internal, heap_deltas);
        let area = FlagArea::new(self.memory, self.plan.areas, internal, endpoints());
        let links = Links::new(job, area, network::of_process());
        let links: &Links = Box::leak(Box::new(links));
        let pe: &OwnPe = Box::leak(Box::new(OwnPe::new(links, predefined)));
        own_pe::set(pe);
        warning::set_claim(|text| links::of_process().area.claim_warning(text));

        // Whoever learns where the statuses are may read them at once, and the watchdog reports by
        // them who was lost.
        status::write_first(links);
        report_statuses(links)?;
        machine::set_statuses(links);
        polling_calls::install_handler(links);
        watchdog::start(&links.job);
        Ok(Joined { pe })
    }
}

impl Joined {
    /// Returns to the job, after the last finalize.
    ///
    /// # Errors
    /// If the launcher is lost.
    pub(super) fn again(pe: &'static OwnPe) -> Result<Joined, StartError> {
        status::enter(pe.links, Stage::Starting);
        pe.job().membership().report_resumption()?;
        Ok(Joined { pe })
    }
}

/// Tells `oshrun` where it can read the statuses: in the memory of the node, where the slices of
/// the PEs are `stride` bytes apart.
fn report_statuses(Links { job, area, .. }: &Links) -> Result<(), StartError> {
    let memory = job.memory;
    let in_slice = memory.internal().addr() - memory.heap().addr();
    let offset = in_slice + area.areas().status();
    let stride = memory.layout().stride() as u64;
    job.membership().report_statuses(stride, offset as u64)?;
    Ok(())
}

/// Returns the images of a segment, for the life of the process.
fn images_of(segment: Segment, deltas: Deltas) -> &'static Images {
    Box::leak(Box::new(Images::new(segment, deltas)))
}

/// Returns the number of PEs that share a CPU of this machine.
fn pes_per_cpu(place: &Place, cpus: MachineCpus) -> u32 {
    (place.n_local as usize).div_ceil(cpus.usable.max(1)) as u32
}

/// Logs the algorithms that the table chooses for collectives of all PEs.
fn show_algorithms(table: &Table, facts: &ChoiceFacts) {
    if rushmem_system::log::is_on(rushmem_system::log::Level::DEBUG) {
        for (operation, rows) in table.described(facts) {
            rushmem_system::log::debug!("{operation} of all PEs: {rows}");
        }
    }
}

/// Returns the facts on which the algorithms of the world team depend.
pub(super) fn facts(nodes: &NodeMap, is_oversubscribed_somewhere: bool) -> ChoiceFacts {
    let n_pes = nodes.n_pes();
    ChoiceFacts {
        members: n_pes,
        per_node: Members::world(n_pes).per_node(nodes),
        oversubscribed: is_oversubscribed_somewhere,
        receive_buffer_bytes: receive_buffer::nbytes(n_pes),
        pair_flags: true,
        lines: true,
    }
}

/// Returns the members of the predefined teams: all PEs, those that share memory with this one, and
/// those of its machine.
pub(super) fn predefined_members(place: &Place) -> [Members; PREDEFINED as usize] {
    let group_of_this =
        |groups: &NodeMap| Members::listed(groups.members(groups.node_of(place.me.0)).collect());
    [
        Members::world(place.n_pes),
        group_of_this(&place.nodes),
        group_of_this(&place.machines),
    ]
}
