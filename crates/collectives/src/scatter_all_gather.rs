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

    let receive = (rank != 0).then(|| Step::Wait {
        peer: from_behind(n, me, to_parent(rank)),
    });
    let scatter = to_children(n, rank).rev().map(move |k| {
        let child = rank + (1 << k);
        let last = child + subtree(n, child) - 1;
        let shares = share(n, child, parts).start..share(n, last, parts).end;
        Step::put_to_dest(to_ahead(n, me, k), from, shares)
    });

    // The shares of a subtree are with its root after the scatter.
    let has_share = move |rank: u32, owner| (rank..rank + subtree(n, rank)).contains(&owner);
    let next = ahead(n, rank, 1);
    let ring = (0..n - 1).flat_map(move |age| {
        let outgoing = behind(n, rank, age);
        let put = (!has_share(next, outgoing))
            .then(|| Step::put_to_dest(to_ahead(n, me, 0), from, share(n, outgoing, parts)));

        let incoming = behind(n, rank, age + 1);
        let wait = (!has_share(rank, incoming)).then(|| Step::Wait {
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
        let steps: Vec<_> = broadcast(4, 2, 0, 4).collect();
        let put = |share| Step::put_to_dest(to_ahead(4, 2, 0), Buffer::Dest, share..share + 1);
        let wait = Step::Wait {
            peer: from_behind(4, 2, 0),
        };
        assert_eq!(steps[1..], [put(3), put(2), wait, put(1), wait, put(0)]);
    }

    #[test]
    fn one_member_has_nothing_to_do() {
        assert_eq!(broadcast(1, 0, 0, 5).count(), 0);
    }
}
