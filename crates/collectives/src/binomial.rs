//! The binomial tree: a broadcast in the fewest rounds, and a sync with the fewest messages.
//!
//! S. L. Johnsson, C.-T. Ho: Optimum broadcasting and personalized communication in hypercubes.
//! IEEE Transactions on Computers 38 (9), 1989.
//!
//! A member's rank in the tree is its distance from the root around the circle. A rank's parent is
//! the rank with its lowest set bit cleared; its children are at distances below that bit.

use crate::index::{ahead, behind, powers_below};
use crate::{Place, Step};

/// The plan of a broadcast of `Source` of `root`, one part, in ⌈log2 n⌉ rounds. It arrives in
/// `Dest` of every other member; `Dest` of the root itself is not touched.
pub fn broadcast(n: u32, me: u32, root: u32) -> impl Iterator<Item = Step> + Clone {
    let rank = behind(n, me, root);
    let from = if rank == 0 { Place::Source } else { Place::Dest };
    let receive = (rank != 0).then(|| Step::Wait { peer: ahead(n, parent(rank), root) });
    let send = children(n, rank).rev().map(move |distance| Step::Put {
        peer: ahead(n, me, distance),
        from: from.at(0),
        to: Place::Dest.at(0),
        count: 1,
    });
    receive.into_iter().chain(send)
}

/// The plan by which those that [`broadcast`] writes to tell those that write that they have entered: each
/// member signals its parent, and waits for its children.
pub fn arrivals(n: u32, me: u32, root: u32) -> impl Iterator<Item = Step> + Clone {
    let rank = behind(n, me, root);
    let to_parent =
        (rank != 0).then(|| Step::Signal { peer: ahead(n, parent(rank), root) }).into_iter();
    let from_children =
        children(n, rank).map(move |distance| Step::Wait { peer: ahead(n, me, distance) });
    to_parent.chain(from_children)
}

/// The plan of a sync that gathers at index 0 and is released from there. Each member but one
/// sleeps until its subtree is there, and once more until it is released: where PEs share cores
/// that takes fewer turns of the scheduler than the rounds of a dissemination.
pub fn gather_sync(n: u32, me: u32) -> impl Iterator<Item = Step> + Clone {
    let gather = children(n, me).map(move |distance| Step::Wait { peer: me + distance });
    let at_parent = (me != 0).then(|| {
        let peer = parent(me);
        [Step::Signal { peer }, Step::Wait { peer }]
    });
    let release = children(n, me).rev().map(move |distance| Step::Signal { peer: me + distance });
    gather.chain(at_parent.into_iter().flatten()).chain(release)
}

/// The parent of a rank other than 0.
const fn parent(rank: u32) -> u32 {
    rank & (rank - 1)
}

/// Distances from a rank to its children, the smallest subtree first.
fn children(n: u32, rank: u32) -> impl DoubleEndedIterator<Item = u32> + Clone {
    let after = n - rank;
    let subtree = if rank == 0 { n } else { 1 << rank.trailing_zeros() };
    powers_below(after.min(subtree))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(from: Place, peer: u32) -> Step {
        Step::Put { peer, from: from.at(0), to: Place::Dest.at(0), count: 1 }
    }

    #[test]
    fn the_root_serves_the_largest_subtree_first() {
        let steps: Vec<_> = broadcast(6, 1, 1).collect();
        assert_eq!(steps, [put(Place::Source, 5), put(Place::Source, 3), put(Place::Source, 2)]);
    }

    #[test]
    fn an_inner_member_passes_on_what_it_received() {
        let steps: Vec<_> = broadcast(6, 5, 1).collect();
        assert_eq!(steps, [Step::Wait { peer: 1 }, put(Place::Dest, 0)]);
    }

    #[test]
    fn those_that_put_have_heard_from_those_they_put_to() {
        // Miri takes minutes for more.
        for n in 1..if cfg!(miri) { 8 } else { 40 } {
            for root in 0..n {
                for me in 0..n {
                    let heard: Vec<u32> = arrivals(n, me, root).filter_map(waited_for).collect();
                    let puts = broadcast(n, me, root).filter_map(|step| match step {
                        Step::Put { peer, .. } => Some(peer),
                        _ => None,
                    });
                    assert!(puts.into_iter().all(|peer| heard.contains(&peer)));
                    for peer in heard {
                        let signal = Step::Signal { peer: me };
                        assert_eq!(arrivals(n, peer, root).filter(|s| *s == signal).count(), 1);
                    }
                }
            }
        }
    }

    fn waited_for(step: Step) -> Option<u32> {
        match step {
            Step::Wait { peer } => Some(peer),
            _ => None,
        }
    }

    #[test]
    fn a_sync_gathers_then_releases() {
        let steps: Vec<_> = gather_sync(8, 4).collect();
        assert_eq!(
            steps,
            [
                Step::Wait { peer: 5 },
                Step::Wait { peer: 6 },
                Step::Signal { peer: 0 },
                Step::Wait { peer: 0 },
                Step::Signal { peer: 6 },
                Step::Signal { peer: 5 },
            ]
        );
    }

    #[test]
    fn one_member_has_nothing_to_do() {
        assert_eq!(broadcast(1, 0, 0).count(), 0);
        assert_eq!(gather_sync(1, 0).count(), 0);
    }
}
