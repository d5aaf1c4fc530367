//! Unit tests of `nodes`.

use super::*;
use proptest::prelude::*;

proptest! {
    #[test]
    fn agrees_with_a_plain_list(marks in prop::collection::vec(0_u8..5, 1..60)) {
        let map = NodeMap::from_marks(&marks).expect("not empty");
        prop_assert_eq!(map.n_pes() as usize, marks.len());
        for (pe, mark) in marks.iter().enumerate() {
            let mates: Vec<u32> = (0..map.n_pes()).filter(|&other| marks[other as usize] == *mark).collect();
            let node = map.node_of(pe as u32);
            prop_assert_eq!(map.members(node).collect::<Vec<_>>(), mates.clone());
            prop_assert_eq!(map.size(node) as usize, mates.len());
            prop_assert_eq!(mates[map.local_index(pe as u32) as usize], pe as u32);
        }
        let nodes = (0..map.n_nodes()).map(|node| map.members(node).next().expect("no node is empty"));
        prop_assert!(nodes.is_sorted());
        let wire = postcard::to_stdvec(&map).expect("plain data");
        prop_assert_eq!(postcard::from_bytes::<NodeMap>(&wire).expect("own bytes"), map);
    }

    #[test]
    fn invalid_input_is_refused_or_consistent(runs in prop::collection::vec((0_u32..4, prop::num::u32::ANY), 0..6)) {
        let total: u64 = runs.iter().map(|(_, len)| u64::from(*len)).sum();
        if let Ok(map) = NodeMap::from_runs(runs) {
            prop_assert_eq!(u64::from(map.n_pes()), total);
            prop_assert_eq!(map.node_of(0), 0);
            prop_assert_eq!(map.local_index(map.n_pes() - 1) + 1, map.size(map.node_of(map.n_pes() - 1)));
        }
    }
}

#[test]
fn bad_runs_are_refused() {
    for runs in
        [vec![], vec![(0, 0)], vec![(1, 1)], vec![(0, 1), (2, 1)], vec![(0, u32::MAX), (0, 1)]]
    {
        assert_eq!(NodeMap::from_runs(runs.clone()), Err(InvalidNodes), "{runs:?}");
    }
    assert_eq!(NodeMap::one_node(0), Err(InvalidNodes));
}

#[test]
fn blocks_stay_compact() {
    let map = NodeMap::from_marks((0..1 << 20).map(|pe| pe / 128)).expect("not empty");
    assert_eq!(
        (map.runs.len(), map.n_nodes(), map.node_of(129), map.local_index(129)),
        (8192, 8192, 1, 1)
    );
}
