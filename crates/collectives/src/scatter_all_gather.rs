//! The broadcast of long vectors: the root scatters its vector over a binomial tree, then all
//! gather it around the ring, so that all members share the work of sending.
//!
//! M. Barnett, L. Shuler, R. van de Geijn, S. Gupta, D. G. Payne, J. Watts: Interprocessor
//! collective communication library (InterCom). Scalable High Performance Computing Conference,
//! 1994.

use crate::binomial::{subtree, to_children, to_parent};
use crate::edge::{from_behind, to_ahead};
use crate::index::{ahead, behind, share};
use crate::{Buffer, Step};

/// Returns the plan of a broadcast of `parts` parts of `Source` of `root` in ⌈log2 n⌉ + n - 1
/// rounds at most; a member puts less than 2 vectors. The parts are put to `Dest` of every other
/// member; `Dest` of the root itself is not touched.
///
/// The parts that a member receives in the scatter, for itself and its subtree, are not sent to it
/// around the ring again. So the root receives nothing, and no part is written twice.
pub fn broadcast(n: u32, me: u32, root: u32, parts: u32) -> impl Iterator<Item = Step> + Clone {
    let rank = behind(n, me, root);
    let from = if rank == 0 {
        Buffer::Source
    } else {
        Buffer::Dest
    };
    let shares = move |first, count| {
        (
            share(n, first, parts).0,
            share(n, first + count - 1, parts).1,
        )
    };
    let holds = move |rank: u32, share| (rank..rank + subtree(n, rank)).contains(&share);

    let receive = (rank != 0).then(|| Step::Wait {
        peer: from_behind(n, me, to_parent(rank)),
    });
    let scatter = to_children(n, rank).rev().map(move |k| {
        let child = rank + (1 << k);
        Step::put_to_dest(to_ahead(n, me, k), from, shares(child, subtree(n, child)))
    });
    let next = ahead(n, rank, 1);
    let ring = (0..n - 1).flat_map(move |age| {
        let outgoing = behind(n, rank, age);
        let incoming = behind(n, rank, age + 1);
        let put = (!holds(next, outgoing))
            .then(|| Step::put_to_dest(to_ahead(n, me, 0), from, shares(outgoing, 1)));
        let wait = (!holds(rank, incoming)).then(|| Step::Wait {
            peer: from_behind(n, me, 0),
        });
        put.into_iter().chain(wait)
    });
    receive.into_iter().chain(scatter).chain(ring)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ring_carries_what_the_scatter_did_not() {
        // Rank 2 of 4 has the shares 2 and 3 after the scatter, and rank 3 the last.
        let (to, from) = (to_ahead(4, 2, 0), from_behind(4, 2, 0));
        let put = |share| Step::put_to_dest(to, Buffer::Dest, (share, share + 1));
        let steps: Vec<_> = broadcast(4, 2, 0, 4).collect();
        let wait = Step::Wait { peer: from };
        assert_eq!(steps[1..], [put(3), put(2), wait, put(1), wait, put(0)]);
    }

    #[test]
    fn one_member_has_nothing_to_do() {
        assert_eq!(broadcast(1, 0, 0, 5).count(), 0);
    }
}
