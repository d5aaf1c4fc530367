//! Recursive doubling: reductions and scans of short vectors, and all-gathers, in the fewest
//! rounds.
//!
//! All-reduce and all-gather: R. Thakur, R. Rabenseifner, W. Gropp: Optimization of collective
//! communication operations in MPICH. International Journal of High Performance Computing
//! Applications 19 (1), 2005. Scan: W. D. Hillis, G. L. Steele: Data parallel algorithms.
//! Communications of the ACM 29 (12), 1986.
//!
//! A partial result always stands for a run of neighboring indices, and the lower run is the left
//! operand. So the operation needs to be associative only, not commutative.

use crate::edge::{from_ahead, from_behind, to_ahead, to_behind};
use crate::index::{log2_ceil, rounds};
use crate::own_block::with_own_block;
use crate::{Buffer, Partner, Span, Step};

const ACCUMULATOR: Span = Buffer::Accumulator.at(0);

/// Returns the plan of an all-reduce in ⌊log2 n⌋ rounds, and two more unless `n` is a power of two.
///
/// The accumulator holds the own contribution at the start and the result at the end. Every member
/// combines in the same tree, so results are equal to the last bit, also in floating point. No
/// member leaves it before all have entered it.
pub fn all_reduce(n: u32, me: u32) -> impl Iterator<Item = Step> + Clone {
    let core = FoldCore::of(n);
    let fold_receive_buffer = core.rounds();
    let active = core.position(me);
    let folded = core
        .folded_onto(me)
        .map(|index| Partner::exchange(index, core.rounds()));

    let fold_in = folded.map(|peer| {
        [
            Step::Wait { peer },
            Step::Reduce {
                receive_buffer: fold_receive_buffer,
                receive_buffer_is_left: false,
            },
        ]
    });
    let rounds = active.into_iter().flat_map(move |position| {
        (0..core.rounds()).flat_map(move |k| exchange(me, core.partner(position, k), k))
    });
    let fold_out = folded.map(|peer| put(peer, fold_receive_buffer));

    // The plan of a member that is folded onto another one.
    let passive = active.is_none().then(|| {
        let peer = Partner::exchange(me - 1, core.rounds());
        [
            put(peer, fold_receive_buffer),
            Step::Wait { peer },
            Step::Copy {
                from: Buffer::Receive(fold_receive_buffer).at(0),
                to: ACCUMULATOR,
                count: 1,
            },
        ]
    });

    (fold_in.into_iter().flatten())
        .chain(rounds)
        .chain(fold_out)
        .chain(passive.into_iter().flatten())
}

/// Returns the plan by which members learn that the members to which they will put in
/// [`all_reduce`] have entered it. It precedes the first of several all-reduces with receive
/// buffers that other teams use, too.
pub fn entry(n: u32, me: u32) -> impl Iterator<Item = Step> + Clone {
    let core = FoldCore::of(n);
    let position = core.position(me);
    let partners = position
        .into_iter()
        .flat_map(move |position| (0..core.rounds()).map(move |k| core.partner(position, k)));

    // The member that is folded onto this one, or onto which this one is folded.
    let other_of_fold = match position {
        Some(_) => core.folded_onto(me),
        None => Some(me - 1),
    };
    let peers = partners.chain(other_of_fold.map(|index| Partner::exchange(index, core.rounds())));

    let signals = peers.clone().map(|peer| Step::Signal { peer });
    signals.chain(peers.map(|peer| Step::Wait { peer }))
}

/// Returns the plan of an inclusive scan in ⌈log2 n⌉ rounds: a sync by dissemination whose signals
/// carry partial results, but for those that go around the circle. The accumulator has the own
/// contribution at the start, and the combined contributions of the indices `0..=me` at the end. No
/// member leaves it before all have entered it.
pub fn inclusive_scan(n: u32, me: u32) -> impl Iterator<Item = Step> + Clone {
    rounds(n).flat_map(move |k| {
        let distance = 1 << k;
        let receiver = to_ahead(n, me, k);
        let send = if distance < n - me {
            put(receiver, k)
        } else {
            Step::Signal { peer: receiver }
        };

        let wait = Step::Wait {
            peer: from_behind(n, me, k),
        };
        let reduce = (distance <= me).then_some(Step::Reduce {
            receive_buffer: k,
            receive_buffer_is_left: true,
        });
        [send, wait].into_iter().chain(reduce)
    })
}

/// Returns the plan by which members learn that the members to which they will put in a scan have
/// entered it. It precedes the first of several scans with receive buffers that other teams use,
/// too.
pub fn scan_entry(n: u32, me: u32) -> impl Iterator<Item = Step> + Clone {
    let signals = rounds(me + 1).map(move |k| Step::Signal {
        peer: to_behind(n, me, k),
    });
    let waits = rounds(n - me).map(move |k| Step::Wait {
        peer: from_ahead(n, me, k),
    });
    signals.chain(waits)
}

/// Returns the plan of an exclusive scan: an [`inclusive_scan`] whose results are then passed to
/// the next index.
///
/// At the end the accumulator of every index but 0 has the combined contributions of `0..me`. The
/// accumulator of index 0 is meaningless: there is no contribution before it, and the runtime
/// writes the identity of the operator to its destination instead.
pub fn exclusive_scan(n: u32, me: u32) -> impl Iterator<Item = Step> + Clone {
    inclusive_scan(n, me).chain(shifted(n, me))
}

/// Returns the plan by which each member puts its result of an inclusive scan to the next index.
fn shifted(n: u32, me: u32) -> impl Iterator<Item = Step> + Clone {
    let receive_buffer = log2_ceil(n) as u8;
    let send = (1 < n - me).then(|| put(to_ahead(n, me, 0), receive_buffer));
    let receive = (me > 0).then(|| {
        [
            Step::Wait {
                peer: from_behind(n, me, 0),
            },
            Step::Copy {
                from: Buffer::Receive(receive_buffer).at(0),
                to: ACCUMULATOR,
                count: 1,
            },
        ]
    });
    send.into_iter().chain(receive.into_iter().flatten())
}

/// Returns the plan of an all-gather among a power of two of members in log2 n rounds: part 0 of
/// `Source` of member `i` becomes part `i` of `Dest` everywhere. A member puts n - 1 parts. No
/// member leaves it before all have entered it.
pub fn all_gather(n: u32, me: u32) -> impl Iterator<Item = Step> + Clone {
    debug_assert!(n.is_power_of_two());
    // Before round k a member has the 2^k parts whose numbers differ from its index in the lowest k
    // bits alone.
    let rounds = rounds(n).flat_map(move |k| {
        let peer = Partner::exchange(me ^ (1 << k), k);
        let first = me >> k << k;
        [
            Step::put_to_dest(peer, Buffer::Dest, first..first + (1 << k)),
            Step::Wait { peer },
        ]
    });
    with_own_block(me, rounds)
}

/// Returns the step that puts the accumulator to a receive buffer of `peer`.
pub(crate) const fn put(peer: Partner, receive_buffer: u8) -> Step {
    Step::Put {
        peer,
        from: ACCUMULATOR,
        to: Buffer::Receive(receive_buffer).at(0),
        count: 1,
    }
}

/// Returns the steps of a round after which both members have the same partial result.
const fn exchange(me: u32, peer: Partner, receive_buffer: u8) -> [Step; 3] {
    let receive_buffer_is_left = peer.index < me;
    [
        put(peer, receive_buffer),
        Step::Wait { peer },
        Step::Reduce {
            receive_buffer,
            receive_buffer_is_left,
        },
    ]
}

/// The members that take part in the rounds: a power of two of them, of a team of any size. Each
/// surplus member is folded onto its neighbor: each of the first `extra` members of the core also
/// has the contribution of the next index. So the members at a run of positions in the core have
/// the contributions of a run of neighboring indices.
#[derive(Clone, Copy)]
pub(crate) struct FoldCore {
    size: u32,
    extra: u32,
}

impl FoldCore {
    pub(crate) const fn of(n: u32) -> Self {
        let size = 1 << n.ilog2();
        Self {
            size,
            extra: n - size,
        }
    }

    pub(crate) const fn rounds(self) -> u8 {
        self.size.ilog2() as u8
    }

    /// Returns the partner of the member at a position in round `k`.
    pub(crate) const fn partner(self, position: u32, k: u8) -> Partner {
        Partner::exchange(self.member(position ^ (1 << k)), k)
    }

    /// Returns the position of `me` in the core; `None` if it is folded onto another member.
    pub(crate) const fn position(self, me: u32) -> Option<u32> {
        if me >= 2 * self.extra {
            Some(me - self.extra)
        } else if me.is_multiple_of(2) {
            Some(me / 2)
        } else {
            None
        }
    }

    /// Returns the member at a position of the core.
    pub(crate) const fn member(self, position: u32) -> u32 {
        if position < self.extra {
            2 * position
        } else {
            position + self.extra
        }
    }

    /// Returns the member that is folded onto `me`, if there is one.
    pub(crate) const fn folded_onto(self, me: u32) -> Option<u32> {
        if me < 2 * self.extra && me.is_multiple_of(2) {
            Some(me + 1)
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests;
