//! Counts the messages that must follow one another until a plan ends, and compares them with the
//! documented numbers of rounds.

use crate::call::Call::{
    self, AllReduce, AllToAll, Broadcast, Bruck, BruckAllToAll, CentralReduceScatter,
    DirectGatherTo, DirectReduceScatter, DirectReduceTo, DirectScatter, Dissemination,
    ExclusiveScan, Gather, GatherSync, GatherTo, InclusiveScan, LongBroadcast, OwnExclusiveScan,
    OwnInclusiveScan, ReduceTo, Scatter, TwoLevelShort, TwoLevelSync,
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

/// Returns the two additional rounds that a core of a power of two of members needs unless it has
/// all of the `n` members.
fn fold_rounds(n: u32) -> u32 {
    if n.is_power_of_two() { 0 } else { 2 }
}

const LARGE: [u32; 9] = [255, 256, 257, 511, 512, 513, 1023, 1024, 1025];

#[test]
fn rounds_are_as_documented() {
    for n in (1..=130_u32).chain(LARGE) {
        let fold = fold_rounds(n);
        let credit = u32::from(n > 1);
        assert_eq!(depth(n, Dissemination), log2(n), "n = {n}");
        assert_eq!(depth(n, Bruck), log2(n), "n = {n}");
        assert!(depth(n, AllReduce) <= n.ilog2() + fold, "n = {n}");
        assert!(depth(n, Broadcast { root: n / 3 }) <= log2(n), "n = {n}");
        assert!(
            depth(n, ReduceTo { root: n / 3 }) <= log2(n) + credit,
            "n = {n}"
        );
        assert_eq!(depth(n, OwnInclusiveScan), log2(n), "n = {n}");
        assert!(depth(n, OwnExclusiveScan) <= log2(n) + credit, "n = {n}");
        assert!(depth(n, InclusiveScan) <= log2(n) + credit, "n = {n}");
        assert!(depth(n, ExclusiveScan) <= log2(n) + 2 * credit, "n = {n}");
        assert!(depth(n, GatherSync) <= 2 * log2(n), "n = {n}");
        let halving = depth(n, Call::reduce(Rabenseifner, n));
        assert!(halving <= 2 * n.ilog2() + fold, "n = {n}");
        if n.is_power_of_two() {
            assert_eq!(depth(n, Gather(Gathering::RecursiveDoubling)), log2(n));
        }
    }
}

#[test]
fn direct_plans_take_the_rounds_of_their_syncs() {
    for n in 1..=64 {
        let reduction = DirectReduceTo {
            root: n - 1,
            parts: n,
        };
        assert_eq!(depth(n, reduction), 2 * log2(n), "n = {n}");
        // By the counter that it uses here, a sync is one round.
        let rounds = if n > 1 { 2 } else { 0 };
        assert_eq!(depth(n, DirectReduceScatter), rounds, "n = {n}");
        assert_eq!(depth(n, CentralReduceScatter), rounds / 2, "n = {n}");

        let root = n / 3;
        assert_eq!(depth(n, GatherTo { root }), u32::from(n > 1), "n = {n}");
        assert_eq!(depth(n, Scatter { root }), u32::from(n > 1), "n = {n}");
        assert!(depth(n, DirectGatherTo { root }) <= log2(n), "n = {n}");
        assert!(depth(n, DirectScatter { root }) <= 2 * log2(n), "n = {n}");
    }
}

#[test]
fn rounds_of_two_levels_are_as_documented() {
    for n in (1..=130_u32).chain(LARGE) {
        for p in [1, 2, 3, 4, 64] {
            let on_node = log2(p.min(n));
            let nodes = n.div_ceil(p);
            let between_nodes = nodes.ilog2() + fold_rounds(nodes);

            let sync = depth(n, TwoLevelSync { p });
            assert!(sync <= 2 * on_node + log2(nodes), "n = {n}, p = {p}");

            let short = depth(n, TwoLevelShort { p });
            assert!(short <= 2 * on_node + between_nodes, "n = {n}, p = {p}");

            let piece = depth(n, Call::reduce(TwoLevelPiece { p, shared: true }, 1));
            assert!(piece <= 3 * on_node + between_nodes + 1, "n = {n}, p = {p}");

            let long_between_nodes = nodes.ilog2() + between_nodes;
            let one_lane = depth(n, Call::reduce(TwoLevel { p, lanes: 1 }, 9));
            assert!(
                one_lane <= 3 * on_node + long_between_nodes,
                "n = {n}, p = {p}"
            );
            let two_lanes = depth(n, Call::reduce(TwoLevel { p, lanes: 2 }, 9));
            assert!(
                two_lanes <= 6 * on_node + long_between_nodes,
                "n = {n}, p = {p}"
            );
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

        let root = n / 3;
        assert!(depth(n, LongBroadcast { root, parts: 50 }) < log2(n) + n);

        if n.is_multiple_of(2) {
            assert_eq!(depth(n, Gather(Gathering::NeighborExchange)), n / 2);
        }
    }
}
