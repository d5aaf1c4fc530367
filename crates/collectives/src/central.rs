//! The central counter: a sync, reductions, scans and exchanges for PEs that share CPUs. The
//! scheduler has to run each member only once.
//!
//! J. M. Mellor-Crummey, M. L. Scott: Algorithms for scalable synchronization on shared-memory
//! multiprocessors. ACM Transactions on Computer Systems 9 (1), 1991.
//!
//! Members arrive in any order, so none has to wait for another one to run first: one pass of the
//! scheduler over all members ends a collective and begins the next. The counter is in memory that
//! all members share.

use crate::{Buffer, DirectWork, Receivers, SentParts, Step};

/// Returns the plan of an all-reduce of a vector of `parts` parts: the last member to arrive
/// combines the sources of all, in the order of the indices, and stores the result in all
/// destinations. No member leaves it before all have entered it.
///
/// A source may be the destination, as in the other plans of vectors.
pub fn all_reduce(n: u32, parts: u32) -> impl Iterator<Item = Step> + Clone {
    let work = DirectWork::Reduce {
        first: 0,
        count: parts,
        to: Receivers::All,
    };
    by_the_last(n, (parts > 0).then_some(work))
}

/// Returns the plan of a reduction to member `root`: as in [`all_reduce`], but the result is stored
/// in `Dest` of the root alone.
pub fn reduce_to(n: u32, root: u32, parts: u32) -> impl Iterator<Item = Step> + Clone {
    let work = DirectWork::Reduce {
        first: 0,
        count: parts,
        to: Receivers::One {
            member: root,
            first: 0,
        },
    };
    by_the_last(n, (parts > 0).then_some(work))
}

/// Returns the plan of a reduce-scatter: the last member to arrive combines the sources of all, and
/// stores part `k` of the result in part 0 of `Dest` of member `k`.
pub fn reduce_scatter(n: u32) -> impl Iterator<Item = Step> + Clone {
    let work = DirectWork::Reduce {
        first: 0,
        count: n,
        to: Receivers::Each,
    };
    by_the_last(n, Some(work))
}

/// Returns the plan of a scan of a vector of `parts` parts: the last member to arrive computes the
/// results of all.
pub fn scan(n: u32, parts: u32, exclusive: bool) -> impl Iterator<Item = Step> + Clone {
    // An exclusive scan stores nothing at member 0.
    let is_empty = parts == 0 || exclusive && n == 1;
    let work = (!is_empty).then_some(DirectWork::Scan {
        first: 0,
        count: parts,
        exclusive,
    });
    by_the_last(n, work)
}

/// Returns the plan in which the last member to arrive does the work for all. A single member does
/// it without the counter.
fn by_the_last(n: u32, work: Option<DirectWork>) -> impl Iterator<Item = Step> + Clone {
    let alone = work.filter(|_| n == 1).map(Step::Direct);
    let together = [
        Step::Arrive { owner: 0, work },
        Step::AwaitRelease { owner: 0 },
    ];
    alone
        .into_iter()
        .chain((n > 1).then_some(together).into_iter().flatten())
}

/// Returns the plan of an all-reduce of a few bytes of private memory: the last member to arrive
/// combines what all have stored beside the counter, in the order of the indices. No member leaves
/// it before all have entered it.
///
/// The accumulator holds the own contribution at the start and the result at the end.
pub fn all_reduce_private(n: u32) -> impl Iterator<Item = Step> + Clone {
    let steps = [
        Step::Contribute { owner: 0 },
        Step::AwaitRelease { owner: 0 },
        Step::TakeCombined { owner: 0 },
    ];
    (n > 1).then_some(steps).into_iter().flatten()
}

/// Returns the plan of an all-gather: each member copies part 0 of its `Source` to its part of
/// `Dest` of all. No member leaves it before all have entered it.
pub fn all_gather(n: u32, me: u32) -> impl Iterator<Item = Step> + Clone {
    exchange(n, me, SentParts::First)
}

/// Returns the plan of an all-to-all: each member copies part `k` of its `Source` to its part of
/// `Dest` of member `k`. No member leaves it before all have entered it.
pub fn all_to_all(n: u32, me: u32) -> impl Iterator<Item = Step> + Clone {
    exchange(n, me, SentParts::OfReceiver)
}

/// Returns the plan in which each member copies a part of its `Source` to its part of `Dest` of
/// each member, and then arrives at the counter.
fn exchange(n: u32, me: u32, sent: SentParts) -> impl Iterator<Item = Step> + Clone {
    let own = Step::Copy {
        from: Buffer::Source.at(sent.of(me)),
        to: Buffer::Dest.at(me),
        count: 1,
    };
    let puts = (n > 1).then_some(Step::PutToOthers { sent, to: me });
    std::iter::once(own).chain(puts).chain(sync(n))
}

/// Returns the plan of a sync over the counter of member 0: no member leaves it before all have
/// entered it.
pub fn sync(n: u32) -> impl Iterator<Item = Step> + Clone {
    by_the_last(n, None)
}
