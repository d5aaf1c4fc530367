//! Tests of the positions of members on nodes, and of plans of two levels.

use super::*;
use crate::{Edge, Partner};

const fn pair(index: u32) -> Partner {
    Partner {
        index,
        edge: Edge::Pair,
    }
}

#[test]
fn only_leaders_leave_their_node() {
    let leader: Vec<_> = sync(NodeBlocks { n: 6, me: 2, p: 2 }).collect();
    assert_eq!(
        leader,
        [
            Step::Wait { peer: pair(3) },
            Step::Signal { peer: pair(4) },
            Step::Wait { peer: pair(0) },
            Step::Signal { peer: pair(0) },
            Step::Wait { peer: pair(4) },
            Step::Signal { peer: pair(3) },
        ]
    );

    let other: Vec<_> = sync(NodeBlocks { n: 6, me: 3, p: 2 }).collect();
    assert_eq!(
        other,
        [Step::Signal { peer: pair(2) }, Step::Wait { peer: pair(2) }]
    );
}

#[test]
fn blocks_are_listed_alike() {
    for (n, p) in [(1, 1), (6, 2), (7, 3), (9, 4), (5, 8)] {
        for me in 0..n {
            let blocks = NodeBlocks { n, me, p };
            let lists = NodeLists::of(n, me, |member| member / p);
            let lists = &lists;

            let levels = blocks.levels();
            assert_eq!(lists.levels(), levels, "{blocks:?}");
            for local in 0..levels.members {
                assert_eq!(blocks.member(local), lists.member(local));
            }
            if levels.local < levels.lanes {
                for node in 0..levels.nodes {
                    assert_eq!(blocks.in_lane(node), lists.in_lane(node));
                }
            }
        }
    }
}

#[test]
fn members_of_a_node_need_not_be_neighbors() {
    // The nodes are 5, 9 and 7, in the order of their first members.
    let marks = [5, 9, 5, 7, 9, 5];
    let of = |me| NodeLists::of(6, me, |member| marks[member as usize]);
    let levels = |node, members, local| Levels {
        nodes: 3,
        node,
        members,
        local,
        lanes: 1,
    };
    assert_eq!((&of(5)).levels(), levels(0, 3, 2));
    assert_eq!((&of(1)).levels(), levels(1, 2, 0));
    assert_eq!([0, 1, 2].map(|node| (&of(1)).in_lane(node)), [0, 1, 3]);
    assert_eq!([0, 1].map(|local| (&of(4)).member(local)), [1, 4]);
}

#[test]
fn lanes_are_as_many_as_pay() {
    for (p, parts, expected) in [
        (2, 0, 1),
        (2, 2047, 1),
        (2, 2048, 2),
        (2, u32::MAX, 2),
        (64, 0, 1),
        (64, 128, 4),
        (64, u32::MAX, 64),
    ] {
        let found = lanes(NodeBlocks { n: 3 * p, me: 0, p }, parts);
        assert_eq!(found, expected, "{parts} parts on nodes of {p}");
    }
}
