//! Direct plans, best for members that access each other's memory by loads and stores: each copies
//! or combines data from the sources of the others, without receive buffers in between.
//!
//! R. L. Graham, G. Shipman: MPI support for multi-core architectures: Optimized shared memory
//! collectives. Recent Advances in Parallel Virtual Machine and Message Passing Interface
//! (EuroPVM/MPI), LNCS 5205, 2008.
//!
//! No member reads a source before its owner has entered, or after it has left: there is a sync
//! before and one after.

use crate::choice::SyncAlgorithm;
use crate::index::{ahead, share};
use crate::{Buffer, Step};

/// Returns the plan of an all-reduce of a vector of `parts` parts between two syncs: member `me`
/// combines its share of the parts, and stores the result in the destinations of all. Contributions
/// are combined in the order of the indices, so the operation needs to be associative only. No
/// member leaves it before all have entered it.
///
/// A source may be the destination: each part is read and written by one member alone.
pub fn all_reduce(
    n: u32,
    me: u32,
    parts: u32,
    sync: SyncAlgorithm,
) -> impl Iterator<Item = Step> + Clone {
    let (first, end) = share(n, me, parts);
    let own = (first < end).then_some(Step::ReduceDirect {
        first,
        count: end - first,
    });
    sync.plan(n, me).chain(own).chain(sync.plan(n, me))
}

/// Returns the plan of a scan of a vector of `parts` parts between two syncs: as in [`all_reduce`],
/// member `me` computes the results of all members for its share of the parts.
pub fn scan(
    n: u32,
    me: u32,
    parts: u32,
    sync: SyncAlgorithm,
    exclusive: bool,
) -> impl Iterator<Item = Step> + Clone {
    let (first, end) = share(n, me, parts);
    let is_empty = first == end || exclusive && n == 1;
    let own = (!is_empty).then_some(Step::ScanDirect {
        first,
        count: end - first,
        exclusive,
    });
    sync.plan(n, me).chain(own).chain(sync.plan(n, me))
}

/// Returns the plan of an all-gather between two syncs: part 0 of `Source` of member `i` becomes
/// part `i` of `Dest` everywhere. No member leaves it before all have entered it.
pub fn all_gather(n: u32, me: u32, sync: SyncAlgorithm) -> impl Iterator<Item = Step> + Clone {
    blocks(n, me, 0, sync)
}

/// Returns the plan of an all-to-all between two syncs: part `j` of `Source` of member `i` becomes
/// part `i` of `Dest` of member `j`. No member leaves it before all have entered it.
pub fn all_to_all(n: u32, me: u32, sync: SyncAlgorithm) -> impl Iterator<Item = Step> + Clone {
    blocks(n, me, me, sync)
}

/// Returns the plan that copies part `part` of the source of each member. Each member begins with
/// its own source, so that members read from different peers at any time.
fn blocks(n: u32, me: u32, part: u32, sync: SyncAlgorithm) -> impl Iterator<Item = Step> + Clone {
    let from = Buffer::Source.at(part);
    let own = Step::Copy {
        from,
        to: Buffer::Dest.at(me),
        count: 1,
    };
    let gets = (1..n).map(move |distance| {
        let peer = ahead(n, me, distance);
        Step::Get {
            peer,
            from,
            to: Buffer::Dest.at(peer),
            count: 1,
            with: None,
        }
    });
    sync.plan(n, me)
        .chain([own])
        .chain(gets)
        .chain(sync.plan(n, me))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_without_a_share_still_syncs() {
        let sync = SyncAlgorithm::Dissemination;
        assert_eq!(
            all_reduce(4, 0, 2, sync).count(),
            2 * sync.plan(4, 0).count()
        );
        assert_eq!(
            all_reduce(4, 1, 2, sync).count(),
            2 * sync.plan(4, 1).count() + 1
        );
    }
}
