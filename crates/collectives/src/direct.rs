//! Direct plans, for members that load from each other's memory: each gets out of the sources of the others what it needs, so
//! that every byte is moved once.
//!
//! R. L. Graham, G. Shipman: MPI support for multi-core architectures: Optimized shared memory collectives. Recent Advances
//! in Parallel Virtual Machine and Message Passing Interface (EuroPVM/MPI), LNCS 5205, 2008.
//!
//! Nobody reads a source before its owner has entered, or after it has left: there is a sync before and one after.

use crate::choice::SyncAlgorithm;
use crate::index::{ahead, behind};
use crate::{Place, Step, binomial};

/// The plan of an all-reduce of a vector of `parts` parts between two syncs: member `me` combines the parts that are
/// [`share`] of it, and stores them in everybody's destination. The contributions are combined in the order of the indices,
/// so the operation needs to be associative only. Nobody ends it before everybody has entered it.
///
/// A source may be the destination: each part is read and written by one member alone.
pub fn all_reduce(
    n: u32,
    me: u32,
    parts: u32,
    sync: SyncAlgorithm,
) -> impl Iterator<Item = Step> + Clone {
    let (first, end) = share(n, me, parts);
    let own = (first < end).then_some(Step::ReduceDirect { first, count: end - first });
    sync.plan(n, me).chain(own).chain(sync.plan(n, me))
}

/// The plan of a scan of a vector of `parts` parts between two syncs, as [`all_reduce`].
pub fn scan(
    n: u32,
    me: u32,
    parts: u32,
    sync: SyncAlgorithm,
    exclusive: bool,
) -> impl Iterator<Item = Step> + Clone {
    let (first, end) = share(n, me, parts);
    let is_empty = first == end || exclusive && n == 1;
    let own = (!is_empty).then_some(Step::ScanDirect { first, count: end - first, exclusive });
    sync.plan(n, me).chain(own).chain(sync.plan(n, me))
}

/// The plan of a broadcast of `parts` parts of `Source` of `root` in 2 ⌈log2 n⌉ rounds: all other members get them at once. They
/// arrive in `Dest` of every other member; `Dest` of the root itself is not touched. The root ends it when all have them.
pub fn broadcast(n: u32, me: u32, root: u32, parts: u32) -> impl Iterator<Item = Step> + Clone {
    get_from(Place::Source, n, me, root, parts)
}

/// The same of what the root has at any place.
pub(crate) fn get_from(
    place: Place,
    n: u32,
    me: u32,
    root: u32,
    parts: u32,
) -> impl Iterator<Item = Step> + Clone {
    let rank = behind(n, me, root);
    let get = (rank != 0 && parts > 0).then_some(Step::Get {
        peer: root,
        from: place.at(0),
        to: Place::Dest.at(0),
        count: parts,
        with: None,
    });
    binomial::release(n, me, rank).chain(get).chain(binomial::gather(n, me, rank))
}

/// The plan of an all-gather between two syncs: part 0 of `Source` of member `i` becomes part `i` of `Dest` everywhere. Nobody
/// ends it before everybody has entered it.
pub fn all_gather(n: u32, me: u32, sync: SyncAlgorithm) -> impl Iterator<Item = Step> + Clone {
    blocks(n, me, 0, sync)
}

/// The plan of an all-to-all between two syncs: part `j` of `Source` of member `i` becomes part `i` of `Dest` of member `j`.
/// Nobody ends it before everybody has entered it.
pub fn all_to_all(n: u32, me: u32, sync: SyncAlgorithm) -> impl Iterator<Item = Step> + Clone {
    blocks(n, me, me, sync)
}

/// A part of everybody's source, beginning with the own one: so members load from different peers at a time.
fn blocks(n: u32, me: u32, part: u32, sync: SyncAlgorithm) -> impl Iterator<Item = Step> + Clone {
    let from = Place::Source.at(part);
    let own = Step::Copy { from, to: Place::Dest.at(me), count: 1 };
    let gets = (1..n).map(move |distance| {
        let peer = ahead(n, me, distance);
        Step::Get { peer, from, to: Place::Dest.at(peer), count: 1, with: None }
    });
    sync.plan(n, me).chain([own]).chain(gets).chain(sync.plan(n, me))
}

/// The parts that member `me` of `n` works on, as the first of them and the one after the last: shares differ by one part at
/// most.
pub fn share(n: u32, me: u32, parts: u32) -> (u32, u32) {
    let at = |member: u64| (member * u64::from(parts) / u64::from(n)) as u32;
    (at(u64::from(me)), at(u64::from(me) + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_cover_all_parts_once() {
        for (n, parts) in [(1, 1), (3, 2), (4, 4), (7, 100)] {
            let ends: Vec<_> = (0..n).map(|me| share(n, me, parts)).collect();
            assert_eq!((ends[0].0, ends[ends.len() - 1].1), (0, parts));
            assert!(ends.windows(2).all(|pair| pair[0].1 == pair[1].0));
        }
        assert_eq!(share(u32::MAX, u32::MAX - 1, u32::MAX), (u32::MAX - 1, u32::MAX));
    }

    #[test]
    fn whoever_has_no_share_still_syncs() {
        let sync = SyncAlgorithm::Dissemination;
        assert_eq!(all_reduce(4, 0, 2, sync).count(), 2 * sync.plan(4, 0).count());
        assert_eq!(all_reduce(4, 1, 2, sync).count(), 2 * sync.plan(4, 1).count() + 1);
    }
}
