//! Unit tests of `areas`.

use super::*;

#[test]
fn nothing_overlaps() {
    for n in [1u32, 2, 3, 64, 512] {
        let a = Areas::new(n);
        let mut ends = vec![(0, LINE)];
        ends.extend((0..n).map(|p| (a.mailbox(Pe(p)), LINE)));
        ends.extend((0..n).map(|p| (a.acknowledged(Pe(p)), LINE)));
        ends.extend((0..n).map(|p| (a.probe(Pe(p)), LINE)));
        for slot in [0, 1, TEAM_SLOTS as u16 - 1] {
            ends.extend((0..n).map(|p| (a.flag(slot, p), LINE)));
            ends.extend((0..2).map(|parity| (a.counts(slot, parity), n as usize * 8)));
            for parity in 0..2 {
                for k in rushmem_collectives::landing::all_reduce(n) {
                    ends.push((a.landing(slot, k, parity), LANDING));
                }
            }
            for k in rushmem_collectives::landing::scan(n) {
                ends.push((a.landing(slot, k, 0), LANDING));
            }
        }
        for parity in 0..2 {
            ends.extend((0..n).map(|p| (a.pair_landing(Pe(p), parity), LANDING)));
        }
        ends.sort();
        for pair in ends.windows(2) {
            assert!(pair[0].0 + pair[0].1 <= pair[1].0, "{pair:?} for {n} PEs");
        }
        let (last, length) = ends[ends.len() - 1];
        assert!(last + length <= a.nbytes());
    }
}
