//! Rabenseifner's all-reduce: a reduce-scatter by recursive halving of the vector, then an
//! all-gather by recursive doubling: few rounds, and few bytes, for long vectors.
//!
//! R. Rabenseifner: Optimization of collective reduction operations. International Conference on
//! Computational Science, LNCS 3036, 2004. R. Thakur, R. Rabenseifner, W. Gropp: Optimization of
//! collective communication operations in MPICH. International Journal of High Performance
//! Computing Applications 19 (1), 2005.
//!
//! Distances double while the vector is halved, so a partial result always stands for a run of
//! neighboring indices, and the operation needs to be associative only. No buffers are needed
//! besides source and destination, and no acknowledgements:
//!
//! - In round `k` of the halving, two partners whose partial results cover the same range of the
//!   vector keep one half of it each. A member combines its half with the partner's, and writes the
//!   result to its own destination, which no peer reads before the member's next signal. It never
//!   writes the half that it gives up again: later rounds work on parts of the half that it keeps.
//! - So the half that a member gives up is read by one peer only, after the member's signal: by the
//!   partner of that round. The same partner overwrites it in the all-gather, after it has read it.
//!   The same is true of the whole vector of a member that is folded onto another one.
//! - A member ends the plan only when the partners of all rounds have overwritten the halves that
//!   it gave up, so no peer still reads its memory.

use crate::edge::{from_ahead, from_behind, to_ahead, to_behind};
use crate::index::share;
use crate::recursive_doubling::FoldCore;
use crate::{Buffer, Operand, Step};
use std::ops::Range;

/// Returns the plan of an all-reduce of a vector of `parts` parts in 2 ⌊log2 n⌋ rounds, and two
/// more unless `n` is a power of two. If `n` is a power of two, a member gets 1 - 1/n of a vector,
/// and puts as much. Otherwise, a member onto which another one is folded gets a whole vector more,
/// and puts one more. No member leaves it before all have entered it.
///
/// A source may be the destination.
pub fn all_reduce(n: u32, me: u32, parts: u32) -> impl Iterator<Item = Step> + Clone {
    of_contributions_in(Buffer::Source, n, me, parts)
}

/// Returns the plan of an [`all_reduce`] of contributions that are in `buffer`: `Source` or `Dest`.
pub(crate) fn of_contributions_in(
    buffer: Buffer,
    n: u32,
    me: u32,
    parts: u32,
) -> impl Iterator<Item = Step> + Clone {
    let core = FoldCore::of(n);
    let position = core.position(me);
    let folds = core.folded_onto(me).is_some();
    // A member onto which another one is folded has the combined contribution in its destination.
    let held = move |member| {
        if core.folded_onto(member).is_some() {
            Buffer::Dest
        } else {
            buffer
        }
    };

    let alone = (n == 1 && buffer == Buffer::Source && parts > 0).then_some(Step::Copy {
        from: Buffer::Source.at(0),
        to: Buffer::Dest.at(0),
        count: parts,
    });

    let fold_in = folds.then(|| {
        let peer = from_ahead(n, me, 0);
        let with = Operand {
            buffer,
            is_left: true,
        };
        let combine = Step::get_combined(peer.index, buffer, 0..parts, with);
        std::iter::once(Step::Wait { peer }).chain(combine)
    });

    let halving = position.into_iter().flat_map(move |position| {
        (0..core.rounds()).flat_map(move |k| {
            let peer = core.partner(position, k);
            let held_in_round = |member| if k == 0 { held(member) } else { Buffer::Dest };
            let with = Operand {
                buffer: held_in_round(me),
                is_left: me < peer.index,
            };
            let kept = range(position, k + 1, parts);
            let combine = Step::get_combined(peer.index, held_in_round(peer.index), kept, with);
            [Step::Signal { peer }, Step::Wait { peer }]
                .into_iter()
                .chain(combine)
        })
    });

    let doubling = position.into_iter().flat_map(move |position| {
        (0..core.rounds()).rev().flat_map(move |k| {
            let peer = core.partner(position, k);
            let kept = range(position, k + 1, parts);
            [
                Step::put_to_dest(peer, Buffer::Dest, kept),
                Step::Wait { peer },
            ]
        })
    });

    let fold_out = folds.then(|| Step::put_to_dest(to_ahead(n, me, 0), Buffer::Dest, 0..parts));

    // The plan of a member that is folded onto another one.
    let folded = position.is_none().then(|| {
        [
            Step::Signal {
                peer: to_behind(n, me, 0),
            },
            Step::Wait {
                peer: from_behind(n, me, 0),
            },
        ]
    });

    alone
        .into_iter()
        .chain(fold_in.into_iter().flatten())
        .chain(halving)
        .chain(doubling)
        .chain(fold_out)
        .chain(folded.into_iter().flatten())
}

/// Returns the parts that the member at a position works on after the vector was halved `k` times.
/// Bit 0 of the position selects the half, bit 1 the half of that half, and so on.
fn range(position: u32, k: u8, parts: u32) -> Range<u32> {
    let number = u64::from(position.reverse_bits()) >> (u32::BITS - u32::from(k));
    share(1 << k, number as u32, parts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Partner;

    #[test]
    fn halves_lie_within_halves() {
        for parts in [1, 5, 64, u32::MAX] {
            for position in 0..16 {
                let mut whole = range(position, 0, parts);
                assert_eq!(whole, 0..parts);

                for k in 0..4 {
                    let half = range(position, k + 1, parts);
                    let other_half = range(position ^ (1 << k), k + 1, parts);
                    let mut ends = [half.start, half.end, other_half.start, other_half.end];
                    ends.sort_unstable();
                    assert_eq!(ends[0]..ends[3], whole);
                    assert_eq!(ends[1], ends[2]);
                    whole = half;
                }
            }
        }
    }

    #[test]
    fn two_members_keep_a_half_each() {
        let peer = Partner::exchange(0, 0);
        let steps: Vec<_> = all_reduce(2, 1, 4).collect();
        let kept = Buffer::Dest.at(2);
        let combine = Step::Get {
            peer: 0,
            from: Buffer::Source.at(2),
            to: kept,
            count: 2,
            with: Some(Operand {
                buffer: Buffer::Source,
                is_left: false,
            }),
        };
        let put = Step::Put {
            peer,
            from: kept,
            to: kept,
            count: 2,
        };
        let signal = Step::Signal { peer };
        let wait = Step::Wait { peer };
        assert_eq!(steps, [signal, wait, combine, put, wait]);
    }

    #[test]
    fn one_member_copies_its_vector() {
        assert_eq!(all_reduce(1, 0, 3).count(), 1);
    }
}
