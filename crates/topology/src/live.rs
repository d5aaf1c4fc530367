//! The topology of this machine, from hwloc or, without it, from /sys. Also answers questions that
//! do not need the whole topology.

use std::path::Path;

use crate::cpus::CpuSet;
use crate::model::Topology;
use crate::{hwloc, sysfs};

impl Topology {
    /// Returns this machine; `usable` has only CPUs that this process may use. If hwloc is absent
    /// or cannot describe this machine, reads /sys and adds a note.
    pub fn of_this_machine() -> Topology {
        match hwloc::this_machine() {
            Ok(topology) => topology.within_affinity(),
            Err(why) => {
                let mut topology = Topology::of_kernel();
                topology
                    .notes
                    .push(format!("{why}; the topology comes from /sys instead"));
                topology
            }
        }
    }

    /// Returns this machine as /sys describes it, for processes that cannot open libraries.
    pub fn of_kernel() -> Topology {
        sysfs::read(Path::new("/sys")).within_affinity()
    }

    fn within_affinity(mut self) -> Topology {
        let affinity = affinity();
        let both = self.usable.and(&affinity);
        // The affinity is what the kernel enforces, so it counts if the description contradicts it.
        self.usable = if both.is_empty() { affinity } else { both };
        self
    }

    /// Returns the machine in a file that `lstopo --of xml` has written, of any hwloc from version
    /// 2 on.
    ///
    /// # Errors
    /// A sentence: hwloc is not installed, or the file cannot be read or is no such description.
    pub fn of_xml(file: &Path) -> Result<Topology, String> {
        hwloc::xml(file)
    }

    /// Returns the machine of a synthetic description of hwloc, such as
    /// `package:2 numa:1 l3:2 core:4 pu:2`.
    ///
    /// # Errors
    /// A sentence: hwloc is not installed, or the description is invalid.
    pub fn of_synthetic(words: &str) -> Result<Topology, String> {
        hwloc::synthetic(words)
    }
}

/// Returns true if this machine has more than one NUMA node, or more than one NIC of a fabric, so
/// that there is something to choose. Cheap, unlike [`Topology::of_this_machine`].
pub fn has_choice() -> bool {
    sysfs::has_choice(Path::new("/sys"))
}

/// Returns the NUMA node to which all of `cpus` belong; `None` if they belong to several or are
/// none, or if only one node of this machine has CPUs.
pub fn numa_node_of(cpus: &CpuSet) -> Option<u32> {
    let topology = Topology {
        numa: sysfs::numa(Path::new("/sys")),
        ..Topology::default()
    };
    if topology.numa.len() <= 1 {
        return None;
    }
    topology.numa_of(cpus).map(|numa| numa.index)
}

/// Returns the number of CPUs that this process may use at once, by its affinity and by the quota
/// of its control group; 1 if it is not known.
pub fn cpus_at_once() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Returns the CPUs that the kernel lets this process use. If it does not tell which, assumes the
/// first ones.
fn affinity() -> CpuSet {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let allowed = status
        .lines()
        .find_map(|line| line.strip_prefix("Cpus_allowed_list:"))
        .and_then(CpuSet::parse);
    match allowed {
        Some(cpus) if !cpus.is_empty() => cpus,
        _ => (0..cpus_at_once() as u32).collect(),
    }
}
