//! Recursive doubling: reductions and scans of short vectors in the fewest rounds.
//!
//! All-reduce: R. Thakur, R. Rabenseifner, W. Gropp: Optimization of collective communication
//! operations in MPICH. International Journal of High Performance Computing Applications 19 (1),
//! 2005. Scan: W. D. Hillis, G. L. Steele: Data parallel algorithms. Communications of the ACM
//! 29 (12), 1986.
//!
//! A partial result always stands for a run of neighbouring indices, and the lower run is the left
//! operand. So the operation needs to be associative only, not commutative.

use crate::edge::{from_ahead, from_behind, to_ahead, to_behind};
use crate::index::{log2_ceil, rounds};
use crate::{Peer, Place, Span, Step};

const ACCUMULATOR: Span = Place::Accumulator.at(0);

/// The plan of an all-reduce in ⌊log2 n⌋ rounds, and two more unless `n` is a power of two.
///
/// The accumulator holds the own contribution at the start and the result at the end. Every member
/// combines in the same tree, so results are equal to the last bit, also in floating point. Nobody ends it before everybody has entered it.
pub fn all_reduce(n: u32, me: u32) -> impl Iterator<Item = Step> + Clone {
    let core = Core::of(n);
    let fold_landing = core.rounds();
    let active = core.position(me);
    let folded = core.folded_onto(me).map(|index| Peer::exchange(index, core.rounds()));

    let fold_in = folded.map(|peer| {
        [Step::Wait { peer }, Step::Reduce { landing: fold_landing, landing_is_left: false }]
    });
    let rounds = active.into_iter().flat_map(move |position| {
        (0..core.rounds()).flat_map(move |k| exchange(me, core.partner(position, k), k))
    });
    let fold_out = folded.map(|peer| put(peer, fold_landing));
    let passive = active.is_none().then(|| {
        let peer = Peer::exchange(me - 1, core.rounds());
        [
            put(peer, fold_landing),
            Step::Wait { peer },
            Step::Copy { from: Place::Landing(fold_landing).at(0), to: ACCUMULATOR, count: 1 },
        ]
    });

    (fold_in.into_iter().flatten())
        .chain(rounds)
        .chain(fold_out)
        .chain(passive.into_iter().flatten())
}

/// The plan by which members learn that those to whom they will put in [`all_reduce`] have entered it: before the first of
/// several with landings that other teams use, too.
pub fn entry(n: u32, me: u32) -> impl Iterator<Item = Step> + Clone {
    let core = Core::of(n);
    let partners = core
        .position(me)
        .into_iter()
        .flat_map(move |position| (0..core.rounds()).map(move |k| core.partner(position, k)));
    let other_of_fold = core.folded_onto(me).or((core.position(me).is_none()).then(|| me - 1));
    let peers = partners.chain(other_of_fold.map(|index| Peer::exchange(index, core.rounds())));
    let signals = peers.clone().map(|peer| Step::Signal { peer });
    signals.chain(peers.map(|peer| Step::Wait { peer }))
}

/// The plan of an inclusive scan in ⌈log2 n⌉ rounds: the accumulator holds the own contribution at
/// the start, those of the indices `0..=me` combined at the end.
///
/// A member may end it before a higher one has entered it, hence the
/// credits: each member first tells those that will put to it that it has entered, so that all its
/// scan landings are free.
pub fn inclusive_scan(n: u32, me: u32) -> impl Iterator<Item = Step> + Clone {
    let credits = rounds(me + 1).map(move |k| Step::Signal { peer: to_behind(n, me, k) });
    let rounds = rounds(n).flat_map(move |k| {
        let distance = 1 << k;
        let send = (distance < n - me)
            .then(|| [Step::Wait { peer: from_ahead(n, me, k) }, put(to_ahead(n, me, k), k)]);
        let receive = (distance <= me).then(|| {
            let peer = from_behind(n, me, k);
            [Step::Wait { peer }, Step::Reduce { landing: k, landing_is_left: true }]
        });
        send.into_iter().chain(receive).flatten()
    });
    credits.chain(rounds)
}

/// The plan of an exclusive scan: an [`inclusive_scan`] whose results move up by one index.
///
/// At the end the accumulator of every index but 0 holds the contributions of `0..me` combined.
/// That of index 0 is not what the caller wants: there is no contribution before it, and the
/// executor writes zero instead.
pub fn exclusive_scan(n: u32, me: u32) -> impl Iterator<Item = Step> + Clone {
    // The neighbour's credit was taken in the first round, and holds for this landing as well.
    let landing = log2_ceil(n) as u8;
    let send = (1 < n - me).then(|| put(to_ahead(n, me, 0), landing));
    let receive = (me > 0).then(|| {
        [
            Step::Wait { peer: from_behind(n, me, 0) },
            Step::Copy { from: Place::Landing(landing).at(0), to: ACCUMULATOR, count: 1 },
        ]
    });
    inclusive_scan(n, me).chain(send).chain(receive.into_iter().flatten())
}

/// The members that take part in the rounds of an all-reduce: a power of two of them. Each of the
/// first `extra` carries the contribution of the next index along with its own.
#[derive(Clone, Copy)]
struct Core {
    size: u32,
    extra: u32,
}

impl Core {
    const fn of(n: u32) -> Self {
        let size = 1 << n.ilog2();
        Self { size, extra: n - size }
    }

    const fn rounds(self) -> u8 {
        self.size.ilog2() as u8
    }

    /// With whom the member at a position exchanges in round `k`.
    const fn partner(self, position: u32, k: u8) -> Peer {
        Peer::exchange(self.member(position ^ (1 << k)), k)
    }

    /// Where in the core `me` is, if it is.
    const fn position(self, me: u32) -> Option<u32> {
        if me >= 2 * self.extra {
            Some(me - self.extra)
        } else if me.is_multiple_of(2) {
            Some(me / 2)
        } else {
            None
        }
    }

    /// The member at a position of the core.
    const fn member(self, position: u32) -> u32 {
        if position < self.extra { 2 * position } else { position + self.extra }
    }

    /// Whose contribution `me` carries along, if anyone's.
    const fn folded_onto(self, me: u32) -> Option<u32> {
        if me < 2 * self.extra && me.is_multiple_of(2) { Some(me + 1) } else { None }
    }
}

/// Send the accumulator to a landing of `peer`.
const fn put(peer: Peer, landing: u8) -> Step {
    Step::Put { peer, from: ACCUMULATOR, to: Place::Landing(landing).at(0), count: 1 }
}

/// One round between two members that end up with the same partial result.
const fn exchange(me: u32, peer: Peer, landing: u8) -> [Step; 3] {
    let landing_is_left = peer.index < me;
    [put(peer, landing), Step::Wait { peer }, Step::Reduce { landing, landing_is_left }]
}

#[cfg(test)]
mod tests;
