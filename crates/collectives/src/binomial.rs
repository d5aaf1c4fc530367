//! The binomial tree: a broadcast and a reduction to a root in the fewest rounds, and a sync with
//! the fewest messages.
//!
//! S. L. Johnsson, C.-T. Ho: Optimum broadcasting and personalized communication in hypercubes.
//! IEEE Transactions on Computers 38 (9), 1989.
//!
//! A member's rank in the tree is its distance from the root around the circle. A rank's parent is
//! the rank with its lowest set bit cleared; its children are at distances below that bit.

use crate::edge::{from_ahead, from_behind, to_ahead, to_behind};
use crate::index::{behind, rounds};
use crate::{Buffer, Step};

/// Returns the plan of a broadcast of `Source` of `root`, one part, in ⌈log2 n⌉ rounds. The part is
/// put to `Dest` of every other member; `Dest` of the root itself is not touched.
pub fn broadcast(n: u32, me: u32, root: u32) -> impl Iterator<Item = Step> + Clone {
    let rank = behind(n, me, root);
    let from = if rank == 0 {
        Buffer::Source
    } else {
        Buffer::Dest
    };

    let receive = (rank != 0).then(|| Step::Wait {
        peer: from_behind(n, me, to_parent(rank)),
    });
    let send = to_children(n, rank).rev().map(move |k| Step::Put {
        peer: to_ahead(n, me, k),
        from: from.at(0),
        to: Buffer::Dest.at(0),
        count: 1,
    });

    receive.into_iter().chain(send)
}

/// Returns the plan of a reduction to `root` in ⌈log2 n⌉ rounds. The accumulator has the own
/// contribution at the start; at the end that of the root has the combined contributions of all.
/// These are combined around the circle from the root on, so the operation must be commutative.
///
/// A member other than the root leaves it when its subtree has contributed. Therefore the plan has
/// credits: each member first signals its children that its receive buffers are free.
pub fn reduce(n: u32, me: u32, root: u32) -> impl Iterator<Item = Step> + Clone {
    let rank = behind(n, me, root);
    let credits = to_children(n, rank).map(move |k| Step::Signal {
        peer: to_ahead(n, me, k),
    });

    let combine = to_children(n, rank).flat_map(move |k| {
        let wait = Step::Wait {
            peer: from_ahead(n, me, k),
        };
        let reduce = Step::Reduce {
            receive_buffer: k,
            receive_buffer_is_left: false,
        };
        [wait, reduce]
    });

    let send = (rank != 0).then(|| {
        let k = to_parent(rank);
        let wait = Step::Wait {
            peer: from_behind(n, me, k),
        };
        let put = Step::Put {
            peer: to_behind(n, me, k),
            from: Buffer::Accumulator.at(0),
            to: Buffer::Receive(k).at(0),
            count: 1,
        };
        [wait, put]
    });

    credits.chain(combine).chain(send.into_iter().flatten())
}

/// Returns the plan by which the receivers of a [`broadcast`] report to the senders that they have
/// entered: each member signals its parent, and waits for its children.
pub fn arrivals(n: u32, me: u32, root: u32) -> impl Iterator<Item = Step> + Clone {
    let rank = behind(n, me, root);
    let waits = to_children(n, rank).map(move |k| Step::Wait {
        peer: from_ahead(n, me, k),
    });
    signal_parent(n, me, rank).into_iter().chain(waits)
}

/// Returns the plan of a sync that gathers at index 0, which then releases the others. A member
/// waits until its subtree has entered, and again until it is released. If PEs share CPUs, the
/// scheduler has to run members less often than for the rounds of a dissemination.
pub fn gather_sync(n: u32, me: u32) -> impl Iterator<Item = Step> + Clone {
    gather(n, me, me).chain(release(n, me, me))
}

/// Returns the plan by which the root learns that all members have entered: each member waits for
/// its children, then signals its parent.
pub(crate) fn gather(n: u32, me: u32, rank: u32) -> impl Iterator<Item = Step> + Clone {
    let waits = to_children(n, rank).map(move |k| Step::Wait {
        peer: from_ahead(n, me, k),
    });
    waits.chain(signal_parent(n, me, rank))
}

/// Returns the plan by which the root signals all members: each member waits for its parent, then
/// signals its children.
pub(crate) fn release(n: u32, me: u32, rank: u32) -> impl Iterator<Item = Step> + Clone {
    let wait = (rank != 0).then(|| Step::Wait {
        peer: from_behind(n, me, to_parent(rank)),
    });
    let signals = to_children(n, rank).rev().map(move |k| Step::Signal {
        peer: to_ahead(n, me, k),
    });
    wait.into_iter().chain(signals)
}

/// Returns the signal of a member to its parent, if it has one.
pub(crate) fn signal_parent(n: u32, me: u32, rank: u32) -> Option<Step> {
    (rank != 0).then(|| Step::Signal {
        peer: to_behind(n, me, to_parent(rank)),
    })
}

/// Returns the logarithm of the distance from a rank other than 0 to its parent.
pub(crate) const fn to_parent(rank: u32) -> u8 {
    rank.trailing_zeros() as u8
}

/// Returns the logarithms of the distances from a rank to its children, the smallest subtree first.
pub(crate) fn to_children(n: u32, rank: u32) -> impl DoubleEndedIterator<Item = u8> + Clone {
    rounds(subtree(n, rank))
}

/// Returns the number of ranks in the subtree of a rank: the rank itself and those that follow it.
pub(crate) fn subtree(n: u32, rank: u32) -> u32 {
    let after = n - rank;
    if rank == 0 {
        n
    } else {
        after.min(1 << rank.trailing_zeros())
    }
}

#[cfg(test)]
mod tests;
