//! Which NIC each PE of a machine uses: the nearest, each by as many PEs as the others.

use crate::cpus::CpuSet;
use crate::model::Nic;

/// How far a NIC is from a PE.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Distance {
    Near,
    SamePackage,
    Elsewhere,
}

/// For each PE of a machine, which has its home at `homes[i]`, the index of its NIC among `nics`; `None` where
/// there are none.
///
/// PEs with a near NIC choose before those that have none nearby, each the one with the fewest PEs
/// so far, so that PEs of one place share its NICs evenly. Where nothing is known of where NICs
/// or PEs are, this is round robin. The same arguments give the same answer to everyone.
pub fn assign(nics: &[&Nic], packages: &[CpuSet], homes: &[CpuSet]) -> Vec<Option<usize>> {
    let mut users = vec![0usize; nics.len()];
    let mut chosen = vec![None; homes.len()];
    for wanted in [Distance::Near, Distance::SamePackage, Distance::Elsewhere] {
        for (home, chosen) in homes.iter().zip(&mut chosen).filter(|(_, chosen)| chosen.is_none()) {
            let candidates =
                (0..nics.len()).filter(|&at| distance(nics[at], packages, home) <= wanted);
            *chosen = candidates.min_by_key(|&at| users[at]);
            if let Some(at) = *chosen {
                users[at] += 1;
            }
        }
    }
    chosen
}

fn distance(nic: &Nic, packages: &[CpuSet], home: &CpuSet) -> Distance {
    let beside = |package: &&CpuSet| package.meets(home) && package.meets(&nic.near);
    if nic.near.is_empty() || home.is_empty() || nic.near.meets(home) {
        Distance::Near
    } else if packages.iter().any(|package| beside(&package)) {
        Distance::SamePackage
    } else {
        Distance::Elsewhere
    }
}

#[cfg(test)]
mod tests {
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
            lists.iter().map(|list| CpuSet::parse(list).expect("a list")).collect()
        };
        let nics: Vec<Nic> = nics.iter().map(|near| nic(near)).collect();
        assign(&nics.iter().collect::<Vec<_>>(), &sets(packages), &sets(homes))
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
        assert_eq!(assigned(&["6-7", "2-3"], &packages, &["0", "4"]), [Some(1), Some(0)]);
        // The PE that has none nearby takes what the others left over.
        assert_eq!(
            assigned(&["4-5", "4-5"], &packages, &["0", "4", "1"]),
            [Some(1), Some(0), Some(0)]
        );
    }

    #[test]
    fn what_is_not_known_is_dealt_in_turn() {
        assert_eq!(assigned(&["", ""], &[], &["0", "1", "2"]), [Some(0), Some(1), Some(0)]);
        assert_eq!(assigned(&["0-1", "2-3"], &[], &["", "", ""]), [Some(0), Some(1), Some(0)]);
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
            let users = |at| chosen.iter().filter(|chosen| **chosen == Some(at)).count();
            let counts: Vec<usize> = (0..n_near).map(users).collect();
            prop_assert_eq!(counts.iter().sum::<usize>(), n_pes);
            prop_assert!(counts.iter().max().unwrap() - counts.iter().min().unwrap() <= 1);
        }
    }
}
