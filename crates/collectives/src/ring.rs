//! The ring (bucket): members exchange data with their neighbors only, good for long blocks and
//! vectors.
//!
//! All-reduce: P. Patarasuk, X. Yuan: Bandwidth optimal all-reduce algorithms for clusters of
//! workstations. Journal of Parallel and Distributed Computing 69 (2), 2009. All-gather: E. Chan,
//! M. Heimlich, A. Purkayastha, R. van de Geijn: Collective communication: theory, practice, and
//! experience. Concurrency and Computation: Practice and Experience 19 (13), 2007.

use crate::edge::{from_behind, to_ahead};
use crate::index::{behind, share};
use crate::own_block::with_own_block;
use crate::{Buffer, Operand, Step};

/// Returns the plan of an all-gather in n - 1 rounds: part 0 of `Source` of member `i` becomes part
/// `i` of `Dest` everywhere. No member leaves it before all have entered it.
pub fn all_gather(n: u32, me: u32) -> impl Iterator<Item = Step> + Clone {
    let right = to_ahead(n, me, 0);
    let left = from_behind(n, me, 0);

    let rounds = (0..n - 1).flat_map(move |age| {
        let block = Buffer::Dest.at(behind(n, me, age));
        [
            Step::Put {
                peer: right,
                from: block,
                to: block,
                count: 1,
            },
            Step::Wait { peer: left },
        ]
    });

    with_own_block(me, rounds)
}

/// Returns the plan of an all-reduce of a vector of `parts` parts in 2 (n - 1) rounds: a member
/// gets 1 - 1/n of a vector, and puts as much. No member leaves it before all have entered it.
///
/// Each share is combined around the ring, from the member after its owner to the owner: each
/// member combines its own contribution with the partial result of its left neighbor. Since
/// contributions are combined around the circle, the operation must be commutative. Then an
/// all-gather passes the complete shares around.
///
/// A member's partial result of a share is read only by its right neighbor, after a signal, and is
/// overwritten in the all-gather by its left neighbor. The share is complete by then, so the right
/// neighbor has read the partial result. A source may be the destination.
pub fn all_reduce(n: u32, me: u32, parts: u32) -> impl Iterator<Item = Step> + Clone {
    let right = to_ahead(n, me, 0);
    let left = from_behind(n, me, 0);

    let alone = (n == 1 && parts > 0).then_some(Step::Copy {
        from: Buffer::Source.at(0),
        to: Buffer::Dest.at(0),
        count: parts,
    });

    let rounds = (1..n).flat_map(move |age| {
        // In the first round the left neighbor's partial result is its contribution, in its source.
        let from = if age == 1 {
            Buffer::Source
        } else {
            Buffer::Dest
        };
        let with = Operand {
            buffer: Buffer::Source,
            is_left: false,
        };
        let combined = share(n, behind(n, me, age + 1), parts);
        let combine = Step::get_combined(left.index, from, combined, with);
        [Step::Signal { peer: right }, Step::Wait { peer: left }]
            .into_iter()
            .chain(combine)
    });

    let gather = (0..n - 1).flat_map(move |age| {
        let complete = share(n, behind(n, me, age), parts);
        [
            Step::put_to_dest(right, Buffer::Dest, complete),
            Step::Wait { peer: left },
        ]
    });

    alone.into_iter().chain(rounds).chain(gather)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Edge, Partner};

    #[test]
    fn a_block_is_passed_on_in_the_round_after_it_came() {
        let peer = |index| Partner {
            index,
            edge: Edge::Ahead(0),
        };
        let wait = Step::Wait { peer: peer(0) };
        let put = Step::Put {
            peer: peer(2),
            from: Buffer::Dest.at(0),
            to: Buffer::Dest.at(0),
            count: 1,
        };
        let steps: Vec<_> = all_gather(3, 1).collect();
        assert_eq!(steps[2..], [wait, put, wait]);
    }

    #[test]
    fn a_share_begins_after_its_owner_and_ends_there() {
        let gets = |me| -> Vec<(u32, Buffer)> {
            let get = |step| match step {
                Step::Get { from, .. } => Some((from.first, from.buffer)),
                _ => None,
            };
            all_reduce(3, me, 3).filter_map(get).collect()
        };
        assert_eq!(gets(0), [(1, Buffer::Source), (0, Buffer::Dest)]);
        assert_eq!(gets(1), [(2, Buffer::Source), (1, Buffer::Dest)]);
    }

    #[test]
    fn one_member_copies_its_block() {
        assert_eq!(all_gather(1, 0).count(), 1);
        assert_eq!(all_reduce(1, 0, 3).count(), 1);
    }
}
