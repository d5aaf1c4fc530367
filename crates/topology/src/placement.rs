//! Places the PEs of a machine: maps them to cores, binds them, and chooses their NICs. The
//! functions are pure.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::cpus::CpuSet;
use crate::model::{Level, Topology};
use crate::nics;

/// The distribution of PEs over cores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum MapBy {
    /// In blocks over the whole machine, each PE beside the next: every NUMA node, L3 cache and NIC
    /// gets its share, and consecutive PEs stay close.
    #[default]
    Spread,
    /// One PE for each hardware thread, core by core.
    Slot,
    /// One PE for each core, in order.
    Core,
    /// The next PE goes to the next group of cores that shares an L3 cache.
    L3,
    /// The next PE goes to the next NUMA node.
    Numa,
    /// The next PE goes to the next socket.
    Socket,
}

impl MapBy {
    /// The words of the command line for each distribution.
    pub const WORDS: [(&'static str, MapBy); 6] = [
        ("spread", MapBy::Spread),
        ("slot", MapBy::Slot),
        ("core", MapBy::Core),
        ("l3", MapBy::L3),
        ("numa", MapBy::Numa),
        ("socket", MapBy::Socket),
    ];
}

impl FromStr for MapBy {
    type Err = String;

    fn from_str(text: &str) -> Result<MapBy, String> {
        look_up(&MapBy::WORDS, text)
    }
}

/// The CPUs to which a PE is bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum BindTo {
    /// The PE is not bound.
    None,
    /// The usable CPUs of its core.
    Core,
    /// The usable CPUs that share its L3 cache.
    L3,
    /// The usable CPUs of its NUMA node.
    Numa,
    /// The usable CPUs of its socket.
    Socket,
}

impl BindTo {
    /// The words of the command line for each binding.
    pub const WORDS: [(&'static str, BindTo); 5] = [
        ("none", BindTo::None),
        ("core", BindTo::Core),
        ("l3", BindTo::L3),
        ("numa", BindTo::Numa),
        ("socket", BindTo::Socket),
    ];

    /// Returns the default for `n_pes` PEs on a machine of which `at_once` CPUs may be used at
    /// once. On machines with several NUMA nodes it is the NUMA node, which keeps a PE near its
    /// memory and NIC and leaves room for its threads. Otherwise, and if PEs outnumber the CPUs,
    /// which the kernel then shares better, PEs are not bound.
    pub fn usual(topology: &Topology, n_pes: u32, at_once: usize) -> BindTo {
        if n_pes as usize <= at_once && topology.cpu_sets(Level::Numa).len() > 1 {
            BindTo::Numa
        } else {
            BindTo::None
        }
    }

    fn level(self) -> Option<Level> {
        match self {
            BindTo::None => None,
            BindTo::Core => Some(Level::Core),
            BindTo::L3 => Some(Level::L3),
            BindTo::Numa => Some(Level::Numa),
            BindTo::Socket => Some(Level::Package),
        }
    }
}

impl FromStr for BindTo {
    type Err = String;

    fn from_str(text: &str) -> Result<BindTo, String> {
        look_up(&BindTo::WORDS, text)
    }
}

fn look_up<T: Copy>(words: &[(&'static str, T)], text: &str) -> Result<T, String> {
    words
        .iter()
        .find(|(word, _)| *word == text)
        .map(|(_, value)| *value)
        .ok_or_else(|| {
            let words: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
            format!("it is one of {}", words.join(", "))
        })
}

/// The placement of one PE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PePlacement {
    /// The usable CPUs of the core that it was assigned to.
    pub home: CpuSet,
    /// The CPUs to which it is bound; `None` if it is not bound.
    pub binding: Option<CpuSet>,
    /// The index of its NIC in [`Topology::candidate_nics`]; `None` if there are no NICs.
    pub nic: Option<usize>,
}

/// The placement of the PEs of a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacementPlan {
    /// The placement of each PE, by its number on the machine.
    pub placements: Vec<PePlacement>,
    /// Remarks for people.
    pub notes: Vec<String>,
}

/// Places the `n_pes` PEs of a machine. The plan depends on the arguments alone, so all processes
/// get the same.
pub fn plan(topology: &Topology, n_pes: u32, map_by: MapBy, bind_to: BindTo) -> PlacementPlan {
    let homes = homes(topology, n_pes as usize, map_by);
    let candidates = topology.candidate_nics();
    let nics = nics::assign(&candidates, &topology.packages, &homes);

    let mut placements = Vec::with_capacity(homes.len());
    for (home, nic) in homes.into_iter().zip(nics) {
        let binding = bind_to
            .level()
            .map(|level| topology.cpu_set_of(level, &home));
        placements.push(PePlacement { home, binding, nic });
    }

    let mut notes = Vec::new();
    if !candidates.is_empty() && candidates.iter().all(|nic| nic.near.is_empty()) {
        notes.push(format!(
            "the location of the NICs is unknown; PEs are assigned to the {} NICs in turn",
            candidates.len()
        ));
    }

    let usable = topology.usable.len();
    if bind_to != BindTo::None && n_pes as usize > usable {
        notes.push(format!(
            "the PEs outnumber the CPUs that they are bound to: {n_pes} on {usable}"
        ));
    }

    PlacementPlan { placements, notes }
}

/// Returns the core of each PE.
fn homes(topology: &Topology, n_pes: usize, map_by: MapBy) -> Vec<CpuSet> {
    let cores = topology.cpu_sets(Level::Core);
    if cores.is_empty() {
        return vec![CpuSet::default(); n_pes];
    }

    match map_by {
        // As far along the cores as the PE is along the PEs.
        MapBy::Spread => (0..n_pes)
            .map(|pe| cores[pe * cores.len() / n_pes].clone())
            .collect(),
        MapBy::Slot => {
            // A core for each of its hardware threads.
            let slots = cores
                .iter()
                .flat_map(|core| std::iter::repeat_n(core, core.len()));
            slots.cycle().take(n_pes).cloned().collect()
        }
        MapBy::Core => cores.iter().cycle().take(n_pes).cloned().collect(),
        MapBy::L3 => in_turn(&cores, &topology.cpu_sets(Level::L3), n_pes),
        MapBy::Numa => in_turn(&cores, &topology.cpu_sets(Level::Numa), n_pes),
        MapBy::Socket => in_turn(&cores, &topology.cpu_sets(Level::Package), n_pes),
    }
}

/// Returns the cores of PEs that go to each of these sets in turn, and within a set to one core
/// after the other.
fn in_turn(cores: &[CpuSet], sets: &[CpuSet], n_pes: usize) -> Vec<CpuSet> {
    let mut groups: Vec<Vec<&CpuSet>> = Vec::new();
    for set in sets {
        let group: Vec<&CpuSet> = cores.iter().filter(|core| core.meets(set)).collect();
        if !group.is_empty() {
            groups.push(group);
        }
    }

    let mut homes = Vec::with_capacity(n_pes);
    for pe in 0..n_pes {
        let group = &groups[pe % groups.len()];
        let round = pe / groups.len();
        homes.push(group[round % group.len()].clone());
    }
    homes
}

#[cfg(test)]
mod tests;
