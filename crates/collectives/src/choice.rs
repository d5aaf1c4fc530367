//! Which algorithm to use where there are several.
//!
//! A choice follows from facts that are the same on every PE, else members would run plans that do
//! not fit together. It must never look at load, time, or anything a PE knows of itself alone.

use crate::{Step, binomial, bruck, central, dissemination, ring};

/// What a choice follows from besides sizes: the same on all members of a team.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts {
    /// All members share one node's memory.
    pub one_node: bool,
    /// PEs of the job share CPUs on some node.
    pub oversubscribed: bool,
    /// The members have a counter that no other team uses.
    pub counter: bool,
}

/// The largest vector that is given to a counter or sent in the line of a flag.
pub const SHORT_MAX_BYTES: usize = 16;

/// From this size on a direct reduction wins over recursive doubling on one node.
pub const DIRECT_MIN_BYTES: usize = 256;

/// From this size of a member's share on it does so across nodes: every member exchanges its share with every other one.
pub const DIRECT_MIN_SHARE: usize = 8 * 1024;

/// From this size of the whole result on the ring wins over Bruck: rounds no longer matter, and
/// neighbours share caches and links.
pub const RING_MIN_BYTES: usize = 512 * 1024;

/// The algorithms of a sync.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncAlgorithm {
    /// [`dissemination::sync`].
    Dissemination,
    /// [`binomial::gather_sync`].
    Gather,
    /// [`central::sync`].
    Central,
}

impl SyncAlgorithm {
    /// The best one.
    pub const fn choose(facts: Facts) -> Self {
        match facts {
            Facts { oversubscribed: false, .. } => Self::Dissemination,
            Facts { one_node: true, counter: true, .. } => Self::Central,
            _ => Self::Gather,
        }
    }

    /// The plan of a sync by this algorithm.
    pub fn plan(self, n: u32, me: u32) -> impl Iterator<Item = Step> + Clone {
        match self {
            Self::Dissemination => Either::Left(dissemination::sync(n, me)),
            Self::Gather => Either::Right(Either::Left(binomial::gather_sync(n, me))),
            Self::Central => Either::Right(Either::Right(central::sync(n))),
        }
    }
}

/// The algorithms of an all-reduce.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AllReduceAlgorithm {
    /// [`recursive_doubling::all_reduce`](crate::recursive_doubling::all_reduce).
    RecursiveDoubling,
    /// [`direct::all_reduce`](crate::direct::all_reduce).
    Direct,
    /// [`central::all_reduce`].
    Central,
}

impl AllReduceAlgorithm {
    /// The best one. `nbytes`: size of a member's vector.
    pub const fn choose(nbytes: usize, n: u32, facts: Facts) -> Self {
        let share = nbytes / n as usize;
        match facts {
            Facts { one_node: false, .. } if share >= DIRECT_MIN_SHARE => Self::Direct,
            Facts { one_node: false, .. } => Self::RecursiveDoubling,
            Facts { oversubscribed: true, counter: true, .. } if nbytes <= SHORT_MAX_BYTES => {
                Self::Central
            }
            // Two passes of the scheduler instead of one for each round.
            Facts { oversubscribed: true, .. } => Self::Direct,
            _ if nbytes >= DIRECT_MIN_BYTES => Self::Direct,
            _ => Self::RecursiveDoubling,
        }
    }
}

/// The algorithms of an all-gather.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AllGatherAlgorithm {
    /// [`bruck::all_gather`].
    Bruck,
    /// [`ring::all_gather`].
    Ring,
}

impl AllGatherAlgorithm {
    /// The better one. `nbytes`: size of the whole result, the blocks of all members together.
    pub const fn choose(nbytes: usize) -> Self {
        if nbytes < RING_MIN_BYTES { Self::Bruck } else { Self::Ring }
    }

    /// The plan of an all-gather by this algorithm.
    pub fn plan(self, n: u32, me: u32) -> impl Iterator<Item = Step> + Clone {
        match self {
            Self::Bruck => Either::Left(bruck::all_gather(n, me)),
            Self::Ring => Either::Right(ring::all_gather(n, me)),
        }
    }
}

/// The plan of a sync by the algorithm that [`SyncAlgorithm::choose`] names.
pub fn sync(n: u32, me: u32, facts: Facts) -> impl Iterator<Item = Step> + Clone {
    SyncAlgorithm::choose(facts).plan(n, me)
}

/// The plan of an all-gather by the algorithm that [`AllGatherAlgorithm::choose`] names. `nbytes`
/// is the size of the whole result, the blocks of all members together.
pub fn all_gather(n: u32, me: u32, nbytes: usize) -> impl Iterator<Item = Step> + Clone {
    AllGatherAlgorithm::choose(nbytes).plan(n, me)
}

/// One of two iterators, in place.
#[derive(Clone)]
enum Either<L, R> {
    Left(L),
    Right(R),
}

impl<L, R> Iterator for Either<L, R>
where
    L: Iterator,
    R: Iterator<Item = L::Item>,
{
    type Item = L::Item;

    fn next(&mut self) -> Option<L::Item> {
        match self {
            Self::Left(iterator) => iterator.next(),
            Self::Right(iterator) => iterator.next(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FACTS: Facts = Facts { one_node: true, oversubscribed: false, counter: true };

    #[test]
    fn pes_that_share_cpus_sync_by_a_counter_or_a_tree() {
        let shared = Facts { oversubscribed: true, ..FACTS };
        assert!(sync(7, 2, FACTS).eq(dissemination::sync(7, 2)));
        assert!(sync(7, 2, shared).eq(central::sync(7)));
        for facts in [Facts { one_node: false, ..shared }, Facts { counter: false, ..shared }] {
            assert!(sync(7, 2, facts).eq(binomial::gather_sync(7, 2)));
        }
    }

    #[test]
    fn long_vectors_are_reduced_directly_where_memory_is_shared() {
        use AllReduceAlgorithm::{Central, Direct, RecursiveDoubling};
        let apart = Facts { one_node: false, ..FACTS };
        let choose = AllReduceAlgorithm::choose;
        assert_eq!(choose(DIRECT_MIN_BYTES, 7, FACTS), Direct);
        assert_eq!(choose(DIRECT_MIN_BYTES - 1, 7, FACTS), RecursiveDoubling);
        let shared = Facts { oversubscribed: true, ..FACTS };
        assert_eq!(choose(SHORT_MAX_BYTES, 7, shared), Central);
        assert_eq!(choose(SHORT_MAX_BYTES + 1, 7, shared), Direct);
        assert_eq!(choose(8, 7, Facts { counter: false, ..shared }), Direct);
        assert_eq!(choose(7 * DIRECT_MIN_SHARE, 7, apart), Direct);
        assert_eq!(choose(7 * DIRECT_MIN_SHARE - 1, 7, apart), RecursiveDoubling);
    }

    #[test]
    fn long_results_go_around_the_ring() {
        assert!(all_gather(7, 2, RING_MIN_BYTES - 1).eq(bruck::all_gather(7, 2)));
        assert!(all_gather(7, 2, RING_MIN_BYTES).eq(ring::all_gather(7, 2)));
    }
}
