//! Finds what is near this PE: the memory of its slice, and its NIC.
//!
//! On a machine with one NUMA node and one NIC, it reads only a few files; hwloc is opened only if
//! there is something to choose. The launcher binds the PE to its CPUs.

use super::cpus::Cpus;
use crate::memory::statics;
use crate::net::process_host;
use crate::settings::NicPreference;
use rushmem_heap::NodeMemory;
use rushmem_topology::{self as topology, CpuSet, Topology};
use rushmem_transport::NicName;

/// Allocates the pages of this PE's slice on its NUMA node, if it is bound to one.
pub(super) fn place_memory(memory: &NodeMemory, cpus: &Cpus) {
    let Some(node) = topology::numa_node_of(&CpuSet::from_words(&cpus.mask)) else { return };
    match memory.prefer_numa_node(node) {
        Ok(()) => rushmem_log::debug!(node, "the symmetric memory is on the PE's NUMA node"),
        Err(why) => rushmem_log::debug!(
            node,
            "the symmetric memory is wherever it is first touched: binding it was refused: {why}"
        ),
    }
}

/// Decides which NIC this PE prefers, number `local` of a machine whose PEs may use the CPUs
/// `beside`. All of them come to the same result without communication, since they read the
/// topology of the same machine.
pub(super) fn choose_nic<'a>(
    preference: &NicPreference,
    beside: impl Iterator<Item = &'a Cpus>,
    local: u32,
) {
    let nic = match preference {
        NicPreference::Any => None,
        NicPreference::Named(nic) => Some(nic.clone()),
        NicPreference::Nearest if topology::has_choice() => nearest(beside, local),
        NicPreference::Nearest => None,
    };
    if let Some(nic) = nic {
        rushmem_log::debug!(NIC = %nic, "prefers a NIC");
        process_host::prefer(nic);
    }
}

fn nearest<'a>(beside: impl Iterator<Item = &'a Cpus>, local: u32) -> Option<NicName> {
    let homes: Vec<CpuSet> = beside.map(|cpus| CpuSet::from_words(&cpus.mask)).collect();
    if homes.len() == 1 {
        // It is the only PE: the library of its network may use several NICs at once.
        return None;
    }
    let machine = match statics::own().of_static_program() {
        true => Topology::of_kernel(),
        false => Topology::of_this_machine(),
    };
    for note in &machine.notes {
        rushmem_log::debug!("{note}");
    }
    let choice = machine.choice();
    if !choice.is_empty() && choice.iter().all(|nic| nic.near.is_empty()) {
        rushmem_log::debug!("where the NICs are is not known: PEs take them in turn");
    }
    let chosen = topology::assign(&choice, &machine.packages, &homes)[local as usize]?;
    let topology::Nic { name, port, interface, .. } = choice[chosen].clone();
    Some(NicName { name, port, interface })
}
