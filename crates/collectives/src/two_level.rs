//! Two levels: the members of a node meet at their leader, and only leaders talk to other nodes.
//!
//! V. Tipparaju, J. Nieplocha, D. Panda: Fast collective operations using shared and remote memory access protocols on clusters.
//! International Parallel and Distributed Processing Symposium (IPDPS), 2003.
//!
//! A node has `p` members with neighbouring indices, the first of which is its leader. `p` is a power of two that divides
//! the size of the team: then edges of less than `p` lead to members of the node, and the others from leader to leader.

use crate::binomial::{gather, release, signal_parent, to_children};
use crate::edge::from_ahead;
use crate::{Operand, Place, Step, dissemination, pull, rabenseifner};

/// The plan of a sync in 2 log2 p + ⌈log2 (n / p)⌉ rounds: nobody ends it before everybody has entered it.
pub fn sync(n: u32, me: u32, p: u32) -> impl Iterator<Item = Step> + Clone {
    let Levels { node, nodes, local, distance, in_node } = Levels::of(n, me, p);
    let leaders = (local == 0).then(|| dissemination::sync(nodes, node));
    (gather(p, local, local).map(in_node))
        .chain(leaders.into_iter().flatten().map(move |step| step.spread(distance)))
        .chain(release(p, local, local).map(in_node))
}

/// The plan of an all-reduce of a vector of `parts` parts in 3 log2 p rounds and those of [`rabenseifner::all_reduce`] over n / p members,
/// which the leaders run. A leader gets log2 p vectors of its node besides, and every other member one at least. Nobody ends it before
/// everybody has entered it.
///
/// In a node partial results go up the binomial tree, each got by the parent; in the end all get the result from the leader,
/// which leaves when all have it. So nobody reads a destination but for those two times, and in between it is the
/// owner's alone. A source may be the destination.
pub fn all_reduce(n: u32, me: u32, p: u32, parts: u32) -> impl Iterator<Item = Step> + Clone {
    let Levels { node, nodes, local, distance, in_node } = Levels::of(n, me, p);
    let up = to_children(p, local).flat_map(move |k| {
        // At this level neither of the two has combined anything, or both have.
        let place = if k == 0 { Place::Source } else { Place::Dest };
        let peer = from_ahead(p, local, k);
        let with = Operand { place, is_left: true };
        let combine = Step::get_combined(peer.index, place, (0, parts), with);
        [Step::Wait { peer }].into_iter().chain(combine)
    });
    let leaders = (local == 0).then(|| {
        let place = if p == 1 { Place::Source } else { Place::Dest };
        rabenseifner::of_contributions_in(place, nodes, node, parts)
    });
    let down = pull::get_from(Place::Dest, p, local, 0, parts);
    (up.chain(signal_parent(p, local, local)).map(in_node))
        .chain(leaders.into_iter().flatten().map(move |step| step.spread(distance)))
        .chain(down.map(in_node))
}

/// Where a member is.
struct Levels<F> {
    node: u32,
    nodes: u32,
    /// Its index in the node.
    local: u32,
    /// The logarithm of the distance from leader to leader.
    distance: u8,
    /// From a step of a plan for the node alone to that for the team.
    in_node: F,
}

impl Levels<()> {
    fn of(n: u32, me: u32, p: u32) -> Levels<impl Fn(Step) -> Step + Copy> {
        debug_assert!(p.is_power_of_two() && n.is_multiple_of(p));
        let local = me % p;
        let in_node = move |step: Step| step.with_peer(|index| me - local + index);
        let distance = p.trailing_zeros() as u8;
        Levels { node: me / p, nodes: n / p, local, distance, in_node }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Edge, Peer};

    #[test]
    fn only_leaders_leave_their_node() {
        let peer = |index, edge| Peer { index, edge };
        let leader: Vec<_> = sync(6, 2, 2).collect();
        let (next, last) = (Edge::Ahead(1), Edge::Ahead(2));
        assert_eq!(
            leader,
            [
                Step::Wait { peer: peer(3, Edge::Behind(0)) },
                Step::Signal { peer: peer(4, next) },
                Step::Wait { peer: peer(0, next) },
                Step::Signal { peer: peer(0, last) },
                Step::Wait { peer: peer(4, last) },
                Step::Signal { peer: peer(3, Edge::Ahead(0)) },
            ]
        );
        let other: Vec<_> = sync(6, 3, 2).collect();
        let (up, down) = (peer(2, Edge::Behind(0)), peer(2, Edge::Ahead(0)));
        assert_eq!(other, [Step::Signal { peer: up }, Step::Wait { peer: down }]);
    }

    #[test]
    fn one_member_to_a_node_is_one_level() {
        assert!(sync(5, 2, 1).eq(dissemination::sync(5, 2)));
        assert!(all_reduce(5, 2, 1, 9).eq(rabenseifner::all_reduce(5, 2, 9)));
    }
}
