//! Counts the CPUs that this PE may use, places its memory near them, and chooses its NIC. The
//! number of CPUs that the PEs of a machine may use together decides whether a PE may spin. Binding
//! PEs to CPUs is left to the launcher.
//!
//! On a machine with one NUMA node and one NIC, only a few files are read. hwloc is opened only if
//! there are several to choose from.

use rushmem_communication::host;
use rushmem_heap::NodeMemory;
use rushmem_pe::memory::statics;
use rushmem_pe::settings::NicPreference;
use rushmem_system::devices::NicName;
use rushmem_topology::{self as topology, CpuSet, Topology};

/// Makes the kernel allocate the pages of this PE's slice of the memory on the NUMA node to which
/// the PE is bound, if it is bound to one.
pub(super) fn place_memory(memory: &NodeMemory, cpus: &Cpus) {
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

/// Chooses the NIC that this PE prefers. `cpus_of_machine` has the CPUs of all PEs of the machine,
/// and `local` is the number of this PE among them. The PEs assign NICs without communication,
/// since they read the topology of the same machine.
pub(super) fn choose_nic<'a>(
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
        host::prefer(nic);
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

    let nics = machine.choice();
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

/// Returns the number of CPUs that the PEs of a machine may use together: those in the affinity of
/// any PE, each counted once. A quota that is below the affinity of a PE limits all PEs together.
pub(super) fn cpus_of_machine<'a>(pes: impl Iterator<Item = &'a Cpus>) -> usize {
    let mut all: Vec<u64> = Vec::new();
    let mut quota = usize::MAX;
    for cpus in pes {
        all.resize(all.len().max(cpus.mask.len()), 0);
        for (all, mask) in all.iter_mut().zip(&cpus.mask) {
            *all |= mask;
        }

        if cpus.at_once < count(&cpus.mask) || cpus.mask.is_empty() {
            quota = quota.min(cpus.at_once);
        }
    }

    let n_cpus = count(&all);
    if n_cpus == 0 {
        // The affinity of no PE could be read.
        quota
    } else {
        n_cpus.min(quota)
    }
}

fn count(mask: &[u64]) -> usize {
    mask.iter().map(|word| word.count_ones() as usize).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cpus(at_once: usize, mask: u64) -> Cpus {
        Cpus {
            at_once,
            mask: vec![mask],
        }
    }

    #[test]
    fn bound_pes_add_up_and_quotas_do_not() {
        assert_eq!(cpus_of_machine([cpus(1, 0b01), cpus(1, 0b10)].iter()), 2);
        assert_eq!(cpus_of_machine([cpus(2, 0b11), cpus(2, 0b11)].iter()), 2);
        assert_eq!(cpus_of_machine([cpus(3, 0xff), cpus(3, 0xff)].iter()), 3);

        let without_affinity = Cpus {
            at_once: 4,
            mask: vec![],
        };
        assert_eq!(cpus_of_machine([without_affinity].iter()), 4);
    }

    #[test]
    fn this_process_may_use_some() {
        assert!(cpus_of_machine([usable_cpus()].iter()) >= 1);
    }
}
