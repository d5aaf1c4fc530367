//! Counts the messages that must follow one another until a plan ends, and compares them with the
//! documented numbers of rounds.

use crate::call::Call::{
    self, AllReduce, AllToAll, Broadcast, Bruck, BruckAllToAll, Dissemination, ExclusiveScan,
    Gather, GatherSync, InclusiveScan, LongBroadcast, TwoLevelShort, TwoLevelSync,
};
use crate::call::{Gathering, Reduction::*};
use crate::simulator::run;

fn depth(n: u32, call: Call) -> u32 {
    run(n, &[call], false, 0).expect("a plan that works")
}

/// Returns the logarithm, rounded up.
fn log2(n: u32) -> u32 {
    n.next_power_of_two().ilog2()
}

#[test]
fn rounds_are_as_documented() {
    for n in (1..=130_u32).chain([255, 256, 257, 511, 512, 513, 1023, 1024, 1025]) {
        let fold = if n.is_power_of_two() { 0 } else { 2 };
        let credit = u32::from(n > 1);
        assert_eq!(depth(n, Dissemination), log2(n), "n = {n}");
        assert_eq!(depth(n, Bruck), log2(n), "n = {n}");
        assert!(depth(n, AllReduce) <= n.ilog2() + fold, "n = {n}");
        assert!(depth(n, Broadcast { root: n / 3 }) <= log2(n), "n = {n}");
        assert!(depth(n, InclusiveScan) <= log2(n) + credit, "n = {n}");
        assert!(depth(n, ExclusiveScan) <= log2(n) + 2 * credit, "n = {n}");
        assert!(depth(n, GatherSync) <= 2 * log2(n), "n = {n}");
        let reduce = |by| depth(n, Call::reduce(by, n));
        assert!(reduce(Rabenseifner) <= 2 * n.ilog2() + fold, "n = {n}");
        for p in [1, 2, 3, 4, 64] {
            let (on_node, nodes) = (log2(p.min(n)), n.div_ceil(p));
            let fold = if nodes.is_power_of_two() { 0 } else { 2 };
            let rounds = nodes.ilog2() + fold;
            assert!(
                depth(n, TwoLevelSync { p }) <= 2 * on_node + log2(nodes),
                "n = {n}"
            );
            assert!(
                depth(n, TwoLevelShort { p }) <= 2 * on_node + rounds,
                "n = {n}"
            );
            let piece = depth(n, Call::reduce(TwoLevelPiece { p, shared: true }, 1));
            assert!(piece <= 3 * on_node + rounds + 1, "n = {n}");
            let long = |lanes| depth(n, Call::reduce(TwoLevel { p, lanes }, 9));
            assert!(long(1) <= 3 * on_node + nodes.ilog2() + rounds, "n = {n}");
            assert!(long(2) <= 6 * on_node + nodes.ilog2() + rounds, "n = {n}");
        }
        if n.is_power_of_two() {
            assert_eq!(depth(n, Gather(Gathering::RecursiveDoubling)), log2(n));
        }
    }
}

#[test]
fn linear_plans_are_no_worse_than_linear() {
    for n in 1..=40 {
        assert_eq!(depth(n, Call::Ring), n - 1);
        assert_eq!(depth(n, AllToAll), u32::from(n > 1));
        assert_eq!(depth(n, BruckAllToAll), log2(n) + u32::from(n > 1));
        assert_eq!(depth(n, Call::reduce(Ring, n)), 2 * (n - 1));
        assert!(
            depth(
                n,
                LongBroadcast {
                    root: n / 3,
                    parts: 50
                }
            ) < log2(n) + n
        );
        if n.is_multiple_of(2) {
            assert_eq!(depth(n, Gather(Gathering::NeighborExchange)), n / 2);
        }
    }
}
