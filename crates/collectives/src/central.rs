//! The central counter: a sync and an all-reduce of a few bytes for PEs that share CPUs. The
//! scheduler has to run each member only once.
//!
//! J. M. Mellor-Crummey, M. L. Scott: Algorithms for scalable synchronization on shared-memory
//! multiprocessors. ACM Transactions on Computer Systems 9 (1), 1991.
//!
//! Members arrive in any order, so none has to wait for another one to run first: one pass of the
//! scheduler over all members ends a sync and begins the next. The counter is in memory that all
//! members share.

use crate::Step;

/// Returns the plan of an all-reduce over the counter of member 0: the last member to arrive
/// combines all contributions, in the order of the indices. No member leaves it before all have
/// entered it.
///
/// The accumulator holds the own contribution at the start and the result at the end.
pub fn all_reduce(n: u32) -> impl Iterator<Item = Step> + Clone {
    let steps = [
        Step::Contribute { owner: 0 },
        Step::AwaitRelease { owner: 0 },
        Step::TakeCombined { owner: 0 },
    ];
    (n > 1).then_some(steps).into_iter().flatten()
}

/// Returns the plan of a sync over the counter of member 0: no member leaves it before all have
/// entered it.
pub fn sync(n: u32) -> impl Iterator<Item = Step> + Clone {
    let steps = [Step::Arrive { owner: 0 }, Step::AwaitRelease { owner: 0 }];
    (n > 1).then_some(steps).into_iter().flatten()
}
