//! Direct plans, best for members that access each other's memory by loads and stores: each
//! combines data from the sources of the others, without receive buffers in between.
//!
//! R. L. Graham, G. Shipman: MPI support for multi-core architectures: Optimized shared memory
//! collectives. Recent Advances in Parallel Virtual Machine and Message Passing Interface
//! (EuroPVM/MPI), LNCS 5205, 2008.
//!
//! No member reads a source before its owner has entered, or after it has left: there is a sync
//! before and one after. Around a root, one half of a sync suffices: the root learns along the
//! binomial tree that all have entered or are done, or the members that the root has entered.

use crate::choice::SyncAlgorithm;
use crate::index::{behind, share};
use crate::{Buffer, DirectWork, Receivers, Step, binomial};

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
    let own = combine_share(n, me, parts, |_| Receivers::All);
    sync.plan(n, me).chain(own).chain(sync.plan(n, me))
}

/// Returns the plan of a reduction to member `root` between two syncs: as in [`all_reduce`], but a
/// share is stored in `Dest` of the root alone. The network moves 1 - 1/n of a vector to each
/// member, and the same to the root again.
pub fn reduce_to(
    n: u32,
    me: u32,
    root: u32,
    parts: u32,
    sync: SyncAlgorithm,
) -> impl Iterator<Item = Step> + Clone {
    let to_root = |first| Receivers::One {
        member: root,
        first,
    };
    let own = combine_share(n, me, parts, to_root);
    sync.plan(n, me).chain(own).chain(sync.plan(n, me))
}

/// Returns the step in which a member combines its share of a vector, if it has one. `to` returns
/// the receivers of a share that begins with a part.
fn combine_share(n: u32, me: u32, parts: u32, to: impl Fn(u32) -> Receivers) -> Option<Step> {
    let share = share(n, me, parts);
    (!share.is_empty()).then(|| {
        Step::Direct(DirectWork::Reduce {
            first: share.start,
            count: share.end - share.start,
            to: to(share.start),
        })
    })
}

/// Returns the plan of a reduce-scatter between two syncs: member `me` combines part `me` of the
/// sources, and stores the result in part 0 of its own `Dest`. Each member moves n - 1 parts, which
/// is the least possible.
pub fn reduce_scatter(n: u32, me: u32, sync: SyncAlgorithm) -> impl Iterator<Item = Step> + Clone {
    let own = Step::Direct(DirectWork::Reduce {
        first: me,
        count: 1,
        to: Receivers::One {
            member: me,
            first: 0,
        },
    });
    sync.plan(n, me).chain([own]).chain(sync.plan(n, me))
}

/// Returns the plan of a gather: part 0 of `Source` of each member becomes its part of `Dest` of
/// `root`, in one round and the ⌈log2 n⌉ rounds in which the root learns that all are done.
pub fn gather(n: u32, me: u32, root: u32) -> impl Iterator<Item = Step> + Clone {
    let from = Buffer::Source.at(0);
    let to = Buffer::Dest.at(me);
    let own = if me == root {
        Step::Copy { from, to, count: 1 }
    } else {
        Step::PutDirect {
            peer: root,
            from,
            to,
            count: 1,
        }
    };
    [own]
        .into_iter()
        .chain(binomial::gather(n, me, behind(n, me, root)))
}

/// Returns the plan of a scatter: part `k` of `Source` of `root` becomes part 0 of `Dest` of member
/// `k`. The members learn in ⌈log2 n⌉ rounds that the root has entered, and each gets its part; in
/// as many rounds the root learns that all are done.
pub fn scatter(n: u32, me: u32, root: u32) -> impl Iterator<Item = Step> + Clone {
    let from = Buffer::Source.at(me);
    let to = Buffer::Dest.at(0);
    let own = if me == root {
        Step::Copy { from, to, count: 1 }
    } else {
        Step::Get {
            peer: root,
            from,
            to,
            count: 1,
            with: None,
        }
    };

    let rank = behind(n, me, root);
    binomial::release(n, me, rank)
        .chain([own])
        .chain(binomial::gather(n, me, rank))
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
    let share = share(n, me, parts);
    // An exclusive scan stores nothing at member 0.
    let is_empty = share.is_empty() || exclusive && n == 1;
    let own = (!is_empty).then_some(Step::Direct(DirectWork::Scan {
        first: share.start,
        count: share.end - share.start,
        exclusive,
    }));
    sync.plan(n, me).chain(own).chain(sync.plan(n, me))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_without_a_share_still_syncs() {
        let sync = SyncAlgorithm::Dissemination;
        let steps_of_sync = sync.plan(4, 0).count();
        assert_eq!(all_reduce(4, 0, 2, sync).count(), 2 * steps_of_sync);
        assert_eq!(all_reduce(4, 1, 2, sync).count(), 2 * steps_of_sync + 1);
    }
}
