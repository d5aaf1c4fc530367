//! Unit tests of `cpus`.

use super::*;
use proptest::prelude::*;

proptest! {
    #[test]
    fn lists_survive_the_way(cpus in prop::collection::btree_set(0u32..300, 0..40)) {
        let set: CpuSet = cpus.iter().copied().collect();
        prop_assert_eq!(CpuSet::parse(&set.to_string()), Some(set.clone()));
        prop_assert!(set.iter().eq(cpus.iter().copied()));
        prop_assert_eq!(set.len(), cpus.len());
        prop_assert_eq!(set.is_empty(), cpus.is_empty());
    }

    #[test]
    fn sets_meet_as_sets_do(
        one in prop::collection::btree_set(0u32..200, 0..20),
        two in prop::collection::btree_set(0u32..200, 0..20),
    ) {
        let set = |cpus: &std::collections::BTreeSet<u32>| cpus.iter().copied().collect::<CpuSet>();
        let a = set(&one);
        let b = set(&two);
        prop_assert_eq!(a.and(&b), set(&(&one & &two)));
        prop_assert_eq!(a.meets(&b), !one.is_disjoint(&two));
        prop_assert_eq!(a.is_within(&b), one.is_subset(&two));

        let mut both = a.clone();
        both.extend(&b);
        prop_assert_eq!(both, set(&(&one | &two)));
    }
}

#[test]
fn the_kernels_form() {
    let set = CpuSet::parse("0-3,8,64-65\n").expect("a list");
    assert_eq!((set.to_string(), set.len()), ("0-3,8,64-65".to_owned(), 7));
    assert_eq!(CpuSet::parse(""), Some(CpuSet::default()));
    assert_eq!(CpuSet::from_words(&[0b101, 0]).to_string(), "0,2");
    for text in ["x", "3-1", "-1", "1-", "0-9999999999", "0-99999999"] {
        assert_eq!(CpuSet::parse(text), None, "{text}");
    }
}
