//! Pairwise all-to-all: each member sends each block directly to its receiver, and at any time
//! members send to different receivers. Also all-gathers, a gather and a scatter of that form.
//!
//! R. Thakur, R. Rabenseifner, W. Gropp: Optimization of collective communication operations in
//! MPICH. International Journal of High Performance Computing Applications 19 (1), 2005.

use crate::index::{ahead, behind};
use crate::{Buffer, Partner, Step};

/// Returns the plan of an all-to-all with n - 1 messages per member: part `j` of `Source` of member
/// `i` becomes part `i` of `Dest` of member `j`. No member leaves it before all have entered it.
pub fn all_to_all(n: u32, me: u32) -> impl Iterator<Item = Step> + Clone {
    exchange(n, me, |receiver| receiver)
}

/// Returns the plan of an all-gather with n - 1 messages per member: part 0 of `Source` of member
/// `i` becomes part `i` of `Dest` everywhere. No member leaves it before all have entered it.
pub fn all_gather(n: u32, me: u32) -> impl Iterator<Item = Step> + Clone {
    exchange(n, me, |_| 0)
}

/// Returns the plan in which each member puts to `Dest` of each other member the part of `Source`
/// that `part` returns for the receiver.
fn exchange(
    n: u32,
    me: u32,
    part: impl Fn(u32) -> u32 + Copy,
) -> impl Iterator<Item = Step> + Clone {
    let to = Buffer::Dest.at(me);
    let puts = (1..n).map(move |distance| {
        let peer = Partner::any(ahead(n, me, distance));
        Step::Put {
            peer,
            from: Buffer::Source.at(part(peer.index)),
            to,
            count: 1,
        }
    });

    let own = Step::Copy {
        from: Buffer::Source.at(part(me)),
        to,
        count: 1,
    };

    let waits = (1..n).map(move |distance| Step::Wait {
        peer: Partner::any(behind(n, me, distance)),
    });

    puts.chain([own]).chain(waits)
}

/// Returns the plan of a gather in one round: part 0 of `Source` of each member becomes its part of
/// `Dest` of `root`.
pub fn gather(n: u32, me: u32, root: u32) -> impl Iterator<Item = Step> + Clone {
    let from = Buffer::Source.at(0);
    let to = Buffer::Dest.at(me);
    let own = if me == root {
        Step::Copy { from, to, count: 1 }
    } else {
        Step::Put {
            peer: Partner::pair(root),
            from,
            to,
            count: 1,
        }
    };

    let n_senders = if me == root { n - 1 } else { 0 };
    let waits = (1..=n_senders).map(move |distance| Step::Wait {
        peer: Partner::pair(ahead(n, me, distance)),
    });
    [own].into_iter().chain(waits)
}

/// Returns the plan of a scatter in one round: part `k` of `Source` of `root` becomes part 0 of
/// `Dest` of member `k`.
pub fn scatter(n: u32, me: u32, root: u32) -> impl Iterator<Item = Step> + Clone {
    let to = Buffer::Dest.at(0);
    let n_receivers = if me == root { n - 1 } else { 0 };
    let puts = (1..=n_receivers).map(move |distance| {
        let peer = Partner::pair(ahead(n, me, distance));
        Step::Put {
            peer,
            from: Buffer::Source.at(peer.index),
            to,
            count: 1,
        }
    });

    let own = if me == root {
        Step::Copy {
            from: Buffer::Source.at(me),
            to,
            count: 1,
        }
    } else {
        Step::Wait {
            peer: Partner::pair(root),
        }
    };
    puts.chain([own])
}

/// Returns the plan of an [`all_to_all`] of blocks that are sent along
/// [`Edge::Line`](crate::Edge::Line). No peer writes to `Dest`, so it may be `Source`.
pub fn all_to_all_in_lines(n: u32, me: u32) -> impl Iterator<Item = Step> + Clone {
    in_lines(n, me, |peer| peer)
}

/// Returns the plan of an all-gather in one round of blocks that are sent along
/// [`Edge::Line`](crate::Edge::Line): part 0 of `Source` of member `i` becomes part `i` of `Dest`
/// everywhere.
pub fn all_gather_in_lines(n: u32, me: u32) -> impl Iterator<Item = Step> + Clone {
    in_lines(n, me, |_| 0)
}

/// Returns the plan in which each member puts a part of `Source` to a receive buffer of each other
/// member: the part that `part` returns for the receiver. Each member copies what it receives to
/// `Dest`.
fn in_lines(
    n: u32,
    me: u32,
    part: impl Fn(u32) -> u32 + Copy,
) -> impl Iterator<Item = Step> + Clone {
    let receive_buffer = |distance: u32| Buffer::Receive(distance as u8 - 1).at(0);

    let puts = (1..n).map(move |distance| {
        let peer = Partner::line(ahead(n, me, distance));
        let from = Buffer::Source.at(part(peer.index));
        Step::Put {
            peer,
            from,
            to: receive_buffer(distance),
            count: 1,
        }
    });

    let own = Step::Copy {
        from: Buffer::Source.at(part(me)),
        to: Buffer::Dest.at(me),
        count: 1,
    };

    let takes = (1..n).flat_map(move |distance| {
        let peer = Partner::line(behind(n, me, distance));
        let to = Buffer::Dest.at(peer.index);
        [
            Step::Wait { peer },
            Step::Copy {
                from: receive_buffer(distance),
                to,
                count: 1,
            },
        ]
    });

    puts.chain([own]).chain(takes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_member_comes_first_and_the_member_itself_last() {
        let put = |peer| Step::Put {
            peer: Partner::any(peer),
            from: Buffer::Source.at(peer),
            to: Buffer::Dest.at(1),
            count: 1,
        };
        let wait = |peer| Step::Wait {
            peer: Partner::any(peer),
        };
        let own = Step::Copy {
            from: Buffer::Source.at(1),
            to: Buffer::Dest.at(1),
            count: 1,
        };
        let steps: Vec<_> = all_to_all(3, 1).collect();
        assert_eq!(steps, [put(2), put(0), own, wait(0), wait(2)]);
    }

    #[test]
    fn one_member_copies_its_block() {
        assert_eq!(all_to_all(1, 0).count(), 1);
    }
}
