//! Direct reductions and scans: each member combines its share of the vector out of everybody's source and stores it
//! in everybody's destination, so that every byte is loaded once and stored once for each member.
//!
//! R. L. Graham, G. Shipman: MPI support for multi-core architectures: Optimized shared memory collectives. Recent Advances
//! in Parallel Virtual Machine and Message Passing Interface (EuroPVM/MPI), LNCS 5205, 2008.

use crate::Step;
use crate::choice::SyncAlgorithm;

/// The plan of an all-reduce of a vector of `parts` parts between two syncs: member `me` combines the parts that are
/// [`share`] of it. The contributions are combined in the order of the indices, so the operation needs to be associative
/// only. Nobody ends it before everybody has entered it.
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
