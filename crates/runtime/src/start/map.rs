//! The fourth and the fifth step of a start: the PE maps the memory of all PEs of its machine, and
//! makes the memory of its node known to accesses.

use super::agree::{Agreement, Compatible};
use super::error::StartError;
use super::exchange::MemoryPlan;
use super::identify::{Identified, Place};
use super::locality;
use super::record::StartupRecord;
use rushmem_bootstrap::{MAX_RECORD, Records};
use rushmem_heap::statics::PeerStatics;
use rushmem_heap::{NodeMapping, NodeMemory};
use rushmem_pe::memory::address::{self, Deltas};
use rushmem_pe::memory::{huge_pages, shortage, statics};
use rushmem_transport::Directory;

/// A PE that has the memory of its machine.
pub(super) struct Mapped {
    identified: Identified,
    plan: MemoryPlan,
    memory: &'static NodeMemory,
    agreement: Agreement,
    records: Records<StartupRecord>,
}

impl Compatible {
    /// Maps the memory of all PEs of the machine.
    ///
    /// # Errors
    /// If the kernel refuses it.
    pub(super) fn map(mut self) -> Result<Mapped, StartError> {
        rushmem_system::log::debug!("start: maps the memory of its machine");
        let memory = Box::leak(Box::new(self.map_machine()?));

        let Identified {
            place, settings, ..
        } = &self.identified;
        locality::place_memory(memory, &self.records[place.me.0].cpus);
        huge_pages::apply_setting(memory, settings, place.me);
        if place.local == 0 && !memory.has_reserved_pages() {
            shortage::record(settings.symmetric_size, place.n_local);
        }
        Ok(Mapped {
            identified: self.identified,
            plan: self.plan,
            memory,
            agreement: self.agreement,
            records: self.records,
        })
    }

    fn map_machine(&mut self) -> Result<NodeMemory, StartError> {
        let Identified {
            session,
            place,
            settings,
            ..
        } = &mut self.identified;

        // There is no file under `oshrun`, where the static data are in the memory of the node.
        let mut files = session.take_node_files().into_iter();
        let mut peers = Vec::new();
        for peer in place.on_machine() {
            let file = files.next().flatten();
            let in_slot = self.records[peer].statics_in_slot;
            peers.push(in_slot.map(|in_slot| PeerStatics { in_slot, file }));
        }

        let mapped = match self.plan.layout {
            Some(layout) => NodeMemory::map(NodeMapping {
                memory: session.take_node_memory(),
                layout,
                n_local: place.n_local,
                local: place.local,
                reserved: self.reserved.take(),
                pages: self.pages.as_ref(),
                published_bytes: Directory::most_bytes(place.n_pes, MAX_RECORD),
                statics: statics::own(),
                peers: &peers,
            }),
            None => Err(rushmem_heap::Error::TooLarge),
        };
        mapped.map_err(|why| StartError::Memory {
            nbytes: settings.symmetric_size,
            n_local: place.n_local,
            why,
        })
    }
}

/// A PE that can access the memory of its node.
pub(super) struct Published {
    pub(super) identified: Identified,
    pub(super) plan: MemoryPlan,
    pub(super) memory: &'static NodeMemory,
    /// The distances of the heaps and of the static data of this node's PEs from those of this PE.
    pub(super) deltas: [Deltas; 2],
    pub(super) agreement: Agreement,
}

impl Mapped {
    /// Makes the memory of this node's PEs known to accesses, and chooses a NIC if some memory of
    /// peers is not mapped.
    pub(super) fn publish(self) -> Published {
        rushmem_system::log::debug!("start: publishes the memory of its node");
        let Identified {
            place, settings, ..
        } = &self.identified;
        let deltas = publish_deltas(place, self.memory);

        if self.agreement.needs_transport {
            let cpus_of_machine = place.on_machine().map(|pe| &self.records[pe].cpus);
            locality::choose_nic(&settings.nic, cpus_of_machine, place.local);
        }

        if let Some(why) = statics::refusal() {
            rushmem_system::log::debug!(
                "the static data of this PE are not in shared memory: {why}"
            );
        }
        rushmem_system::log::debug!(
            n_pes = place.n_pes,
            n_local = place.n_local,
            usable_cpus = self.agreement.cpus[place.machine as usize].usable,
            heap_bytes = self.memory.layout().heap_bytes(),
            n_nodes = place.nodes.n_nodes(),
            static_bytes = statics::own().nbytes(),
            static_data = if self.agreement.has_statics_apart {
                "by the transport"
            } else {
                "like the heap"
            },
            "joined the job"
        );
        Published {
            identified: self.identified,
            plan: self.plan,
            memory: self.memory,
            deltas,
            agreement: self.agreement,
        }
    }
}

/// Makes the memory of this node's PEs known to accesses. Returns the distances of their heaps and
/// of their static data from those of this PE.
fn publish_deltas(place: &Place, memory: &NodeMemory) -> [Deltas; 2] {
    let mut heap_deltas = Vec::new();
    let mut statics_deltas = Vec::new();
    for peer in 0..place.n_pes {
        if place.is_on_node(peer) {
            let local = place.machines.local_index(peer);
            heap_deltas.push(Some(memory.delta(local)));
            statics_deltas.push(memory.statics_delta(local));
        } else {
            // Memory of other nodes is not accessed by the CPU, even if it is mapped, as that of
            // virtual nodes is.
            heap_deltas.push(None);
            statics_deltas.push(None);
        }
    }

    let [heap, statics] = [heap_deltas, statics_deltas]
        .map(|deltas| Deltas::of_table(Box::leak(Deltas::table(deltas.into_iter()))));
    address::publish(heap, statics);
    [heap, statics]
}
