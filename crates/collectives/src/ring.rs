//! The ring (bucket) all-gather: every byte moves between neighbours only, good for long blocks.
//!
//! E. Chan, M. Heimlich, A. Purkayastha, R. van de Geijn: Collective communication: theory,
//! practice, and experience. Concurrency and Computation: Practice and Experience 19 (13), 2007.

use crate::edge::{from_behind, to_ahead};
use crate::index::behind;
use crate::{Place, Step};

/// The plan of an all-gather in n - 1 rounds: part 0 of `Source` of member `i` becomes part `i` of
/// `Dest` everywhere. Nobody ends it before everybody has entered it.
pub fn all_gather(n: u32, me: u32) -> impl Iterator<Item = Step> + Clone {
    let own = Step::Copy { from: Place::Source.at(0), to: Place::Dest.at(me), count: 1 };
    let right = to_ahead(n, me, 0);
    let left = from_behind(n, me, 0);
    let rounds = (0..n - 1).flat_map(move |age| {
        let block = Place::Dest.at(behind(n, me, age));
        [Step::Put { peer: right, from: block, to: block, count: 1 }, Step::Wait { peer: left }]
    });
    std::iter::once(own).chain(rounds)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Edge, Peer};

    #[test]
    fn a_block_is_passed_on_in_the_round_after_it_came() {
        let peer = |index| Peer { index, edge: Edge::Ahead(0) };
        let wait = Step::Wait { peer: peer(0) };
        let put = |block| Step::Put {
            peer: peer(2),
            from: Place::Dest.at(block),
            to: Place::Dest.at(block),
            count: 1,
        };
        let steps: Vec<_> = all_gather(3, 1).collect();
        assert_eq!(steps[1..], [put(1), wait, put(0), wait]);
    }

    #[test]
    fn one_member_copies_its_block() {
        assert_eq!(all_gather(1, 0).count(), 1);
    }
}
