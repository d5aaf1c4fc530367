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
mod tests;
