//! Recursive doubling: reductions and scans of short vectors in the fewest rounds.
//!
//! All-reduce: R. Thakur, R. Rabenseifner, W. Gropp: Optimization of collective communication
//! operations in MPICH. International Journal of High Performance Computing Applications 19 (1),
//! 2005. Scan: W. D. Hillis, G. L. Steele: Data parallel algorithms. Communications of the ACM
//! 29 (12), 1986.
//!
//! A partial result always stands for a run of neighbouring indices, and the lower run is the left
//! operand. So the operation needs to be associative only, not commutative.

use crate::index::{log2_ceil, powers_below};
use crate::{Place, Span, Step, landing};

const ACCUMULATOR: Span = Place::Accumulator.at(0);

/// The plan of an all-reduce in ⌊log2 n⌋ rounds, and two more unless `n` is a power of two.
///
/// The accumulator holds the own contribution at the start and the result at the end. Every member
/// combines in the same tree, so results are equal to the last bit, also in floating point. Uses
/// [`landing::all_reduce`]; nobody ends it before everybody has entered it.
pub fn all_reduce(n: u32, me: u32) -> impl Iterator<Item = Step> + Clone {
    let core = Core::of(n);
    let fold_landing = landing::ALL_REDUCE.start + core.rounds() as u8;
    let active = core.position(me);
    let folded = core.folded_onto(me);

    let fold_in = folded.map(|peer| {
        [Step::Wait { peer }, Step::Reduce { landing: fold_landing, landing_is_left: false }]
    });
    let rounds = active.into_iter().flat_map(move |position| {
        (0..core.rounds()).flat_map(move |round| {
            let peer = core.member(position ^ (1 << round));
            exchange(me, peer, landing::ALL_REDUCE.start + round as u8)
        })
    });
    let fold_out = folded.map(|peer| put(peer, fold_landing));
    let passive = active.is_none().then(|| {
        let peer = me - 1;
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

/// The plan of an inclusive scan in ⌈log2 n⌉ rounds: the accumulator holds the own contribution at
/// the start, those of the indices `0..=me` combined at the end.
///
/// Uses [`landing::scan`]. A member may end it before a higher one has entered it, hence the
/// credits: each member first tells those that will put to it that it has entered, so that all its
/// scan landings are free.
pub fn inclusive_scan(n: u32, me: u32) -> impl Iterator<Item = Step> + Clone {
    let credits = powers_below(me + 1).map(move |distance| Step::Signal { peer: me - distance });
    let rounds =
        (landing::SCAN.start..).zip(powers_below(n)).flat_map(move |(landing, distance)| {
            let send = (distance < n - me).then(|| {
                let peer = me + distance;
                [Step::Wait { peer }, put(peer, landing)]
            });
            let receive = (distance <= me).then(|| {
                [
                    Step::Wait { peer: me - distance },
                    Step::Reduce { landing, landing_is_left: true },
                ]
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
    let landing = landing::SCAN.start + log2_ceil(n) as u8;
    let send = (1 < n - me).then(|| put(me + 1, landing));
    let receive = (me > 0).then(|| {
        [
            Step::Wait { peer: me - 1 },
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

    const fn rounds(self) -> u32 {
        self.size.ilog2()
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
const fn put(peer: u32, landing: u8) -> Step {
    Step::Put { peer, from: ACCUMULATOR, to: Place::Landing(landing).at(0), count: 1 }
}

/// One round between two members that end up with the same partial result.
const fn exchange(me: u32, peer: u32, landing: u8) -> [Step; 3] {
    [put(peer, landing), Step::Wait { peer }, Step::Reduce { landing, landing_is_left: peer < me }]
}

#[cfg(test)]
mod tests;
