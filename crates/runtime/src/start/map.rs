//! The fourth and the fifth step of a start: the PE maps the memory of all PEs of its machine, and
//! makes the memory of its node known to accesses. Its part of the memory is placed near its CPUs,
//! and the NIC that it prefers is near them, too; binding PEs to CPUs is left to the launcher.

use super::agree::{Agreement, Compatible};
use super::error::StartError;
use super::exchange::MemoryPlan;
use super::identify::{Identified, Place};
use super::record::{Cpus, StartupRecord};
use rushmem_bootstrap::{MAX_RECORD, Records};
use rushmem_communication::host;
use rushmem_heap::statics::PeerStatics;
use rushmem_heap::{NodeMapping, NodeMemory};
use rushmem_pe::memory::address;
use rushmem_pe::memory::images::Deltas;
use rushmem_pe::memory::{huge_pages, shortage, statics};
use rushmem_pe::settings::NicPreference;
use rushmem_system::devices::NicName;
use rushmem_topology::{self as topology, CpuSet, Topology};
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
        place_memory(memory, &self.records[place.me.0].cpus);
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
            membership,
            place,
            settings,
            ..
        } = &mut self.identified;

        // There is no file under `oshrun`, where the static data are in the memory of the node.
        let mut files = membership.take_node_files().into_iter();
        let mut peers = Vec::new();
        for peer in place.on_machine() {
            let file = files.next().flatten();
            let in_slot = self.records[peer].statics_in_slot;
            peers.push(in_slot.map(|in_slot| PeerStatics { in_slot, file }));
        }

        let mapped = match self.plan.layout {
            Some(layout) => NodeMemory::map(NodeMapping {
                memory: membership.take_node_memory(),
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

/// Makes the kernel allocate the pages of this PE's slice of the memory on the NUMA node to which
/// the PE is bound, if it is bound to one.
fn place_memory(memory: &NodeMemory, cpus: &Cpus) {
    let Some(node) = topology::numa_node_of(&CpuSet::from_words(&cpus.mask)) else {
        return;
    };
    match memory.prefer_numa_node(node) {
        Ok(()) => {
            rushmem_system::log::debug!(node, "the symmetric memory is on the PE's NUMA node")
        }
        Err(why) => rushmem_system::log::debug!(
            node,
            "the symmetric memory is wherever it is first touched: binding it was refused: {why}"
        ),
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
            choose_nic(&settings.nic, cpus_of_machine, place.local);
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

/// Chooses the NIC that this PE prefers. `cpus_of_machine` has the CPUs of all PEs of the machine,
/// and `local` is the number of this PE among them. The PEs assign NICs without communication,
/// since they read the topology of the same machine. hwloc is opened only if there are several NUMA
/// nodes or NICs to choose from.
fn choose_nic<'a>(
    preference: &NicPreference,
    cpus_of_machine: impl Iterator<Item = &'a Cpus>,
    local: u32,
) {
    let nic = match preference {
        NicPreference::Any => None,
        NicPreference::Named(nic) => Some(nic.clone()),
        NicPreference::Nearest if topology::has_choice() => nearest(cpus_of_machine, local),
        NicPreference::Nearest => None,
    };
    if let Some(nic) = nic {
        rushmem_system::log::debug!(NIC = %nic, "prefers a NIC");
        host::set_preferred_nic(nic);
    }
}

/// Returns the NIC that is assigned to this PE; `None` if any may be used.
fn nearest<'a>(cpus_of_machine: impl Iterator<Item = &'a Cpus>, local: u32) -> Option<NicName> {
    let homes: Vec<CpuSet> = cpus_of_machine
        .map(|cpus| CpuSet::from_words(&cpus.mask))
        .collect();
    if homes.len() == 1 {
        // A single PE has no preference: the library of the network may use several NICs at once.
        return None;
    }

    // A statically linked program cannot open hwloc.
    let machine = if statics::own().of_static_program() {
        Topology::of_kernel()
    } else {
        Topology::of_this_machine()
    };
    for note in &machine.notes {
        rushmem_system::log::debug!("{note}");
    }

    let nics = machine.candidate_nics();
    if !nics.is_empty() && nics.iter().all(|nic| nic.near.is_empty()) {
        rushmem_system::log::debug!("where the NICs are is not known: PEs take them in turn");
    }

    let chosen = topology::assign(&nics, &machine.packages, &homes)[local as usize]?;
    let nic = nics[chosen].clone();
    Some(NicName {
        name: nic.name,
        port: nic.port,
        interface: nic.interface,
    })
}
