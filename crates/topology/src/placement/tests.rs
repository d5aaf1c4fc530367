//! Unit tests of `placement`.

use super::*;
use crate::model::Numa;
use proptest::prelude::*;

/// Returns a machine with two sockets. Each is a NUMA node with 2 cores of 2 hardware threads. The
/// second threads of all cores have the highest numbers, as usual.
fn machine() -> Topology {
    let set = |list| CpuSet::parse(list).expect("a list");
    let numa = |index, list| Numa {
        index,
        nbytes: 0,
        cpus: set(list),
    };
    Topology {
        packages: ["0-1,4-5", "2-3,6-7"].map(set).to_vec(),
        numa: vec![numa(0, "0-1,4-5"), numa(1, "2-3,6-7")],
        cores: ["0,4", "1,5", "2,6", "3,7"].map(set).to_vec(),
        usable: set("0-7"),
        ..Topology::default()
    }
}

fn mapped(topology: &Topology, n_pes: u32, map_by: MapBy, bind_to: BindTo) -> Vec<String> {
    let plan = plan(topology, n_pes, map_by, bind_to);
    plan.placements
        .iter()
        .map(|placement| {
            placement
                .binding
                .as_ref()
                .map_or("-".to_owned(), CpuSet::to_string)
        })
        .collect()
}

#[test]
fn each_word_deals_in_its_way() {
    let cases: [(u32, MapBy, &[&str]); 8] = [
        (2, MapBy::Spread, &["0,4", "2,6"]),
        (4, MapBy::Spread, &["0,4", "1,5", "2,6", "3,7"]),
        (
            8,
            MapBy::Spread,
            &["0,4", "0,4", "1,5", "1,5", "2,6", "2,6", "3,7", "3,7"],
        ),
        (3, MapBy::Slot, &["0,4", "0,4", "1,5"]),
        (5, MapBy::Core, &["0,4", "1,5", "2,6", "3,7", "0,4"]),
        (4, MapBy::Numa, &["0,4", "2,6", "1,5", "3,7"]),
        (3, MapBy::Socket, &["0,4", "2,6", "1,5"]),
        // The caches are not known, so PEs are mapped by NUMA nodes.
        (3, MapBy::L3, &["0,4", "2,6", "1,5"]),
    ];
    for (n_pes, map_by, cores) in cases {
        assert_eq!(
            mapped(&machine(), n_pes, map_by, BindTo::Core),
            cores,
            "{map_by:?}"
        );
    }
}

#[test]
fn a_pe_is_confined_to_what_was_requested() {
    let bound = |bind_to| mapped(&machine(), 2, MapBy::Spread, bind_to);
    assert_eq!(bound(BindTo::None), ["-", "-"]);
    assert_eq!(bound(BindTo::Core), ["0,4", "2,6"]);
    assert_eq!(bound(BindTo::Numa), ["0-1,4-5", "2-3,6-7"]);
    assert_eq!(bound(BindTo::Socket), ["0-1,4-5", "2-3,6-7"]);
}

#[test]
fn only_usable_cpus_are_used() {
    let usable = CpuSet::parse("1,3,7").expect("a list");
    let confined = Topology {
        usable,
        ..machine()
    };
    assert_eq!(
        mapped(&confined, 3, MapBy::Core, BindTo::Core),
        ["1", "3,7", "1"]
    );
    assert_eq!(
        mapped(&confined, 2, MapBy::Numa, BindTo::Numa),
        ["1", "3,7"]
    );
    assert_eq!(plan(&confined, 4, MapBy::Core, BindTo::Core).notes.len(), 1);
}

#[test]
fn the_usual_binding_leaves_room_and_never_crowds() {
    assert_eq!(BindTo::usual(&machine(), 8, 8), BindTo::Numa);
    assert_eq!(
        BindTo::usual(&machine(), 8, 4),
        BindTo::None,
        "a quota counts"
    );
    assert_eq!(BindTo::usual(&machine(), 9, 8), BindTo::None);
    let one = Topology {
        usable: CpuSet::parse("0-1").expect("a list"),
        ..machine()
    };
    assert_eq!(
        BindTo::usual(&one, 2, 2),
        BindTo::None,
        "one NUMA node is no choice"
    );
}

#[test]
fn a_machine_of_which_nothing_is_known_still_places() {
    let usable = CpuSet::parse("0-1").expect("a list");
    let bare = Topology {
        usable,
        ..Topology::default()
    };
    assert_eq!(mapped(&bare, 3, MapBy::Numa, BindTo::Core), ["0", "1", "0"]);
    let nothing = plan(&Topology::default(), 2, MapBy::Core, BindTo::None);
    assert!(
        nothing
            .placements
            .iter()
            .all(|placement| placement.home.is_empty())
    );
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
        prop_assert_eq!(plan.placements.len(), n_pes as usize);
        let pes = |core: &CpuSet| plan.placements.iter().filter(|p| p.home == *core).count();
        let counts: Vec<usize> = machine().cores.iter().map(pes).collect();
        prop_assert_eq!(counts.iter().sum::<usize>(), n_pes as usize);
        let slack = if map_by == MapBy::Slot { 2 } else { 1 };
        prop_assert!(counts.iter().max().unwrap() - counts.iter().min().unwrap() <= slack);
    }
}
