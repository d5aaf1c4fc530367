//! Neighbor exchange: an all-gather in half as many rounds as the ring, between neighbors only.
//!
//! J. Chen, L. Zhang, Y. Zhang, W. Yuan: Performance evaluation of allgather algorithms on
//! terascale Linux cluster with fast Ethernet. High-Performance Computing in Asia-Pacific Region
//! (HPC Asia), 2005.

use crate::edge::{from_ahead, from_behind, to_ahead, to_behind};
use crate::index::{ahead, behind};
use crate::own_block::with_own_block;
use crate::{Buffer, Step};

/// Returns the plan of an all-gather among an even number of members in n / 2 rounds: part 0 of
/// `Source` of member `i` becomes part `i` of `Dest` everywhere. A member puts n - 1 parts. No
/// member leaves it before all have entered it.
///
/// Members exchange blocks with each of their two neighbors in turn. The blocks of a pair of
/// members stay together: in each round but the first a member puts the pair that it received in
/// the round before.
pub fn all_gather(n: u32, me: u32) -> impl Iterator<Item = Step> + Clone {
    debug_assert!(n.is_multiple_of(2));
    let rounds = (0..n / 2).flat_map(move |round| {
        let blocks = if round == 0 {
            me..me + 1
        } else {
            let first = pair_after(n, me, round - 1);
            first..first + 2
        };

        if is_with_next(me, round) {
            [
                Step::put_to_dest(to_ahead(n, me, 0), Buffer::Dest, blocks),
                Step::Wait {
                    peer: from_ahead(n, me, 0),
                },
            ]
        } else {
            [
                Step::put_to_dest(to_behind(n, me, 0), Buffer::Dest, blocks),
                Step::Wait {
                    peer: from_behind(n, me, 0),
                },
            ]
        }
    });

    with_own_block(me, rounds)
}

/// Returns true if `me` exchanges blocks with the member ahead in a round, not the one behind. In
/// even rounds the members of even index do, in odd rounds those of odd index.
const fn is_with_next(me: u32, round: u32) -> bool {
    round.is_multiple_of(2) == me.is_multiple_of(2)
}

/// Returns the first block of the pair that `me` has completed in a round.
fn pair_after(n: u32, me: u32, round: u32) -> u32 {
    let own = me - me % 2;
    let distance = 2 * round.div_ceil(2);
    if is_with_next(me, round) {
        ahead(n, own, distance)
    } else {
        behind(n, own, distance)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_come_from_both_sides_in_turn() {
        let puts: Vec<_> = all_gather(8, 2)
            .filter(|step| matches!(step, Step::Put { .. }))
            .collect();
        let to_right = |blocks| Step::put_to_dest(to_ahead(8, 2, 0), Buffer::Dest, blocks);
        let to_left = |blocks| Step::put_to_dest(to_behind(8, 2, 0), Buffer::Dest, blocks);
        assert_eq!(puts[1..], [to_left(2..4), to_right(0..2), to_left(4..6)]);
    }
}
