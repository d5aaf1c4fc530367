//! Which PE of a machine belongs where: mapping, binding and NICs, as pure functions of the machine.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::cpus::CpuSet;
use crate::model::{Level, Topology};
use crate::nics;

/// How PEs are dealt to cores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum MapBy {
    /// In blocks over the whole machine, each PE beside the next: every NUMA node, L3 cache and NIC gets its
    /// share, and neighbours stay neighbours.
    #[default]
    Spread,
    /// One hardware thread after the other.
    Slot,
    /// One core after the other.
    Core,
    /// In turn to each group of cores that shares an L3 cache.
    L3,
    /// In turn to each NUMA node.
    Numa,
    /// In turn to each socket.
    Socket,
}

impl MapBy {
    /// The words of the command line.
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

/// What a PE is confined to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum BindTo {
    /// To nothing.
    None,
    /// To its core, with all hardware threads of that.
    Core,
    /// To the cores that share its L3 cache.
    L3,
    /// To its NUMA node.
    Numa,
    /// To its socket.
    Socket,
}

impl BindTo {
    /// The words of the command line.
    pub const WORDS: [(&'static str, BindTo); 5] = [
        ("none", BindTo::None),
        ("core", BindTo::Core),
        ("l3", BindTo::L3),
        ("numa", BindTo::Numa),
        ("socket", BindTo::Socket),
    ];

    /// Where nobody says: to the NUMA node on machines with several, as it keeps a PE near its memory and its NIC and
    /// leaves its threads room. To nothing where PEs outnumber the CPUs that may be used at once: the kernel
    /// then shares them out better.
    pub fn usual(topology: &Topology, n_pes: u32, at_once: usize) -> BindTo {
        match n_pes as usize <= at_once && topology.places(Level::Numa).len() > 1 {
            true => BindTo::Numa,
            false => BindTo::None,
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
    words.iter().find(|(word, _)| *word == text).map(|(_, value)| *value).ok_or_else(|| {
        let words: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        format!("it is one of {}", words.join(", "))
    })
}

/// Where one PE belongs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The core that it was dealt to.
    pub home: CpuSet,
    /// What it is confined to; `None` for nothing.
    pub binding: Option<CpuSet>,
    /// The index of its NIC in [`Topology::choice`]; `None` where there is none.
    pub nic: Option<usize>,
}

/// Where the PEs of a machine belong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// One for each PE of the machine, in their order there.
    pub places: Vec<Place>,
    /// What is worth knowing about it, in sentences for people.
    pub notes: Vec<String>,
}

/// Places the `n_pes` PEs of a machine. Everyone who knows the machine comes to the same plan.
pub fn plan(topology: &Topology, n_pes: u32, map_by: MapBy, bind_to: BindTo) -> Plan {
    let homes = homes(topology, n_pes as usize, map_by);
    let choice = topology.choice();
    let nics = nics::assign(&choice, &topology.packages, &homes);
    let place = |(home, nic): (CpuSet, Option<usize>)| {
        let binding = bind_to.level().map(|level| topology.place_of(level, &home));
        Place { home, binding, nic }
    };
    let places = homes.into_iter().zip(nics).map(place).collect();
    let mut notes = Vec::new();
    if !choice.is_empty() && choice.iter().all(|nic| nic.near.is_empty()) {
        notes.push(format!(
            "it is not known where the NICs are; the PEs take the {} in turn",
            choice.len()
        ));
    }
    let usable = topology.usable.len();
    if bind_to != BindTo::None && n_pes as usize > usable {
        notes.push(format!(
            "the PEs outnumber the CPUs that they are bound to: {n_pes} on {usable}"
        ));
    }
    Plan { places, notes }
}

/// The core of each PE.
fn homes(topology: &Topology, n_pes: usize, map_by: MapBy) -> Vec<CpuSet> {
    let cores = topology.places(Level::Core);
    if cores.is_empty() {
        return vec![CpuSet::default(); n_pes];
    }
    let in_turn = |level| {
        let places = topology.places(level);
        let of_place = |place: &CpuSet| -> Vec<&CpuSet> {
            cores.iter().filter(|core| core.meets(place)).collect()
        };
        let groups: Vec<Vec<&CpuSet>> =
            places.iter().map(of_place).filter(|group| !group.is_empty()).collect();
        let home = |pe: usize| {
            let group = &groups[pe % groups.len()];
            group[pe / groups.len() % group.len()].clone()
        };
        (0..n_pes).map(home).collect()
    };
    match map_by {
        MapBy::Spread => (0..n_pes).map(|pe| cores[pe * cores.len() / n_pes].clone()).collect(),
        MapBy::Slot => {
            let slots = cores.iter().flat_map(|core| std::iter::repeat_n(core, core.len()));
            slots.cycle().take(n_pes).cloned().collect()
        }
        MapBy::Core => cores.iter().cycle().take(n_pes).cloned().collect(),
        MapBy::L3 => in_turn(Level::L3),
        MapBy::Numa => in_turn(Level::Numa),
        MapBy::Socket => in_turn(Level::Package),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Numa;
    use proptest::prelude::*;

    /// Two sockets with a NUMA node each, 2 cores in each, 2 threads per core, numbered as usual: second threads last.
    fn machine() -> Topology {
        let set = |list| CpuSet::parse(list).expect("a list");
        let numa = |(index, list)| Numa { index, nbytes: 0, cpus: set(list) };
        Topology {
            packages: ["0-1,4-5", "2-3,6-7"].map(set).to_vec(),
            numa: [(0, "0-1,4-5"), (1, "2-3,6-7")].map(numa).to_vec(),
            cores: ["0,4", "1,5", "2,6", "3,7"].map(set).to_vec(),
            usable: set("0-7"),
            ..Topology::default()
        }
    }

    fn mapped(topology: &Topology, n_pes: u32, map_by: MapBy, bind_to: BindTo) -> Vec<String> {
        let plan = plan(topology, n_pes, map_by, bind_to);
        plan.places
            .iter()
            .map(|place| place.binding.as_ref().map_or("-".to_owned(), CpuSet::to_string))
            .collect()
    }

    #[test]
    fn each_word_deals_in_its_way() {
        let cases: [(u32, MapBy, &[&str]); 8] = [
            (2, MapBy::Spread, &["0,4", "2,6"]),
            (4, MapBy::Spread, &["0,4", "1,5", "2,6", "3,7"]),
            (8, MapBy::Spread, &["0,4", "0,4", "1,5", "1,5", "2,6", "2,6", "3,7", "3,7"]),
            (3, MapBy::Slot, &["0,4", "0,4", "1,5"]),
            (5, MapBy::Core, &["0,4", "1,5", "2,6", "3,7", "0,4"]),
            (4, MapBy::Numa, &["0,4", "2,6", "1,5", "3,7"]),
            (3, MapBy::Socket, &["0,4", "2,6", "1,5"]),
            // The caches are not known: as NUMA nodes.
            (3, MapBy::L3, &["0,4", "2,6", "1,5"]),
        ];
        for (n_pes, map_by, cores) in cases {
            assert_eq!(mapped(&machine(), n_pes, map_by, BindTo::Core), cores, "{map_by:?}");
        }
    }

    #[test]
    fn a_pe_is_confined_to_what_was_asked() {
        let bound = |bind_to| mapped(&machine(), 2, MapBy::Spread, bind_to);
        assert_eq!(bound(BindTo::None), ["-", "-"]);
        assert_eq!(bound(BindTo::Core), ["0,4", "2,6"]);
        assert_eq!(bound(BindTo::Numa), ["0-1,4-5", "2-3,6-7"]);
        assert_eq!(bound(BindTo::Socket), ["0-1,4-5", "2-3,6-7"]);
    }

    #[test]
    fn only_usable_cpus_are_used() {
        let usable = CpuSet::parse("1,3,7").expect("a list");
        let confined = Topology { usable, ..machine() };
        assert_eq!(mapped(&confined, 3, MapBy::Core, BindTo::Core), ["1", "3,7", "1"]);
        assert_eq!(mapped(&confined, 2, MapBy::Numa, BindTo::Numa), ["1", "3,7"]);
        assert_eq!(plan(&confined, 4, MapBy::Core, BindTo::Core).notes.len(), 1);
    }

    #[test]
    fn the_usual_binding_leaves_room_and_never_crowds() {
        assert_eq!(BindTo::usual(&machine(), 8, 8), BindTo::Numa);
        assert_eq!(BindTo::usual(&machine(), 8, 4), BindTo::None, "a quota counts");
        assert_eq!(BindTo::usual(&machine(), 9, 8), BindTo::None);
        let one = Topology { usable: CpuSet::parse("0-1").expect("a list"), ..machine() };
        assert_eq!(BindTo::usual(&one, 2, 2), BindTo::None, "one NUMA node is no choice");
    }

    #[test]
    fn a_machine_of_which_nothing_is_known_still_places() {
        let usable = CpuSet::parse("0-1").expect("a list");
        let bare = Topology { usable, ..Topology::default() };
        assert_eq!(mapped(&bare, 3, MapBy::Numa, BindTo::Core), ["0", "1", "0"]);
        let nothing = plan(&Topology::default(), 2, MapBy::Core, BindTo::None);
        assert!(nothing.places.iter().all(|place| place.home.is_empty()));
    }

    #[test]
    fn words_are_those_of_the_list() {
        assert_eq!("numa".parse(), Ok(MapBy::Numa));
        assert_eq!("none".parse(), Ok(BindTo::None));
        let refused = "board".parse::<BindTo>().expect_err("no such word");
        assert_eq!(refused, "it is one of none, core, l3, numa, socket");
    }

    proptest! {
        #[test]
        fn every_pe_has_a_home_and_no_core_has_two_more_than_another(
            n_pes in 1u32..40, word in 0usize..6,
        ) {
            let map_by = MapBy::WORDS[word].1;
            let plan = plan(&machine(), n_pes, map_by, BindTo::None);
            prop_assert_eq!(plan.places.len(), n_pes as usize);
            let pes = |core: &CpuSet| plan.places.iter().filter(|p| p.home == *core).count();
            let counts: Vec<usize> = machine().cores.iter().map(pes).collect();
            prop_assert_eq!(counts.iter().sum::<usize>(), n_pes as usize);
            let slack = if map_by == MapBy::Slot { 2 } else { 1 };
            prop_assert!(counts.iter().max().unwrap() - counts.iter().min().unwrap() <= slack);
        }
    }
}
