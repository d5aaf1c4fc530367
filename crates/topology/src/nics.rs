//! Chooses the NIC of each PE of a machine: one of the nearest. PEs are spread evenly over NICs
//! that are equally near.
//!
//! docs/launching.md describes the rules. `ci/fixtures` has machines on which they are tested.

use crate::cpus::CpuSet;
use crate::model::Nic;

/// The distance of a NIC from a PE.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Distance {
    Near,
    SamePackage,
    Elsewhere,
}

/// Returns the index in `nics` of the NIC of each PE of a machine, or `None` if there are no NICs.
/// `homes` has the CPUs of each PE.
///
/// PEs with a near NIC choose before those without one. Each chooses, among the nearest NICs, the
/// one with the fewest PEs so far, so that PEs share near NICs evenly. If the location of NICs or
/// PEs is unknown, this is round robin. The result depends on the arguments alone.
pub fn assign(nics: &[&Nic], packages: &[CpuSet], homes: &[CpuSet]) -> Vec<Option<usize>> {
    let mut users = vec![0usize; nics.len()];
    let mut chosen = vec![None; homes.len()];
    for wanted in [Distance::Near, Distance::SamePackage, Distance::Elsewhere] {
        for (home, chosen) in homes.iter().zip(&mut chosen) {
            if chosen.is_some() {
                continue;
            }

            *chosen = (0..nics.len())
                .filter(|&nic| distance(nics[nic], packages, home) <= wanted)
                .min_by_key(|&nic| users[nic]);
            if let Some(nic) = *chosen {
                users[nic] += 1;
            }
        }
    }
    chosen
}

fn distance(nic: &Nic, packages: &[CpuSet], home: &CpuSet) -> Distance {
    // An unknown location counts as near, so that all NICs are used.
    if nic.near.is_empty() || home.is_empty() || nic.near.meets(home) {
        return Distance::Near;
    }

    let share_package = packages
        .iter()
        .any(|package| package.meets(home) && package.meets(&nic.near));
    if share_package {
        Distance::SamePackage
    } else {
        Distance::Elsewhere
    }
}

#[cfg(test)]
mod tests;
