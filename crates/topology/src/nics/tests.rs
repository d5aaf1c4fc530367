//! Unit tests of `nics`.

use super::*;
use crate::model::NicKind;
use proptest::prelude::*;

fn nic(near: &str) -> Nic {
    Nic {
        name: "some0".to_owned(),
        kind: NicKind::Fabric,
        port: Some(1),
        interface: None,
        pci: String::new(),
        is_infiniband: true,
        near: CpuSet::parse(near).expect("a list"),
    }
}

fn assigned(nics: &[&str], packages: &[&str], homes: &[&str]) -> Vec<Option<usize>> {
    let sets = |lists: &[&str]| -> Vec<CpuSet> {
        lists
            .iter()
            .map(|list| CpuSet::parse(list).expect("a list"))
            .collect()
    };
    let nics: Vec<Nic> = nics.iter().map(|near| nic(near)).collect();
    assign(
        &nics.iter().collect::<Vec<_>>(),
        &sets(packages),
        &sets(homes),
    )
}

#[test]
fn near_ones_come_first_and_are_shared_evenly() {
    let homes = ["0", "1", "2", "3", "4", "5"];
    let chosen = assigned(&["0-3", "0-3", "4-7"], &["0-3", "4-7"], &homes);
    assert_eq!(chosen, [0, 1, 0, 1, 2, 2].map(Some));
}

#[test]
fn without_a_near_one_the_same_package_is_next() {
    let packages = ["0-3", "4-7"];
    assert_eq!(
        assigned(&["6-7", "2-3"], &packages, &["0", "4"]),
        [Some(1), Some(0)]
    );
    // PE 1, which has near NICs, chooses first, and the others then choose the least used NIC.
    assert_eq!(
        assigned(&["4-5", "4-5"], &packages, &["0", "4", "1"]),
        [Some(1), Some(0), Some(0)]
    );
}

#[test]
fn what_is_not_known_is_dealt_in_turn() {
    assert_eq!(
        assigned(&["", ""], &[], &["0", "1", "2"]),
        [Some(0), Some(1), Some(0)]
    );
    assert_eq!(
        assigned(&["0-1", "2-3"], &[], &["", "", ""]),
        [Some(0), Some(1), Some(0)]
    );
    assert_eq!(assigned(&[], &[], &["0"]), [None]);
}

proptest! {
    #[test]
    fn cards_of_one_place_differ_by_one_pe_at_most(
        n_pes in 1usize..200, n_near in 1usize..9, n_far in 0usize..9,
    ) {
        let near = vec!["0-63"; n_near];
        let nics = [near, vec!["64-127"; n_far]].concat();
        let chosen = assigned(&nics, &["0-63", "64-127"], &vec!["5"; n_pes]);
        let users = |nic| chosen.iter().filter(|chosen| **chosen == Some(nic)).count();
        let counts: Vec<usize> = (0..n_near).map(users).collect();
        prop_assert_eq!(counts.iter().sum::<usize>(), n_pes);
        prop_assert!(counts.iter().max().unwrap() - counts.iter().min().unwrap() <= 1);
    }
}
