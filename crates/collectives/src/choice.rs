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
    /// The members use the buffers that all teams share, landings and contributions to counters: none of them is in several
    /// collectives at once.
    pub shared_buffers: bool,
    /// What a user wants instead of the best.
    pub forced: Forced,
}

/// Algorithms that a user forces, where they can be used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Forced {
    /// Of a sync.
    pub sync: Option<SyncAlgorithm>,
    /// Of an all-reduce.
    pub all_reduce: Option<AllReduceAlgorithm>,
    /// Of an all-gather.
    pub all_gather: Option<AllGatherAlgorithm>,
}

/// Gives an enumeration of algorithms the names by which a user forces them.
macro_rules! named {
    ($algorithms:ident: $($name:literal => $algorithm:ident),+) => {
        impl $algorithms {
            /// The algorithm of a name.
            pub fn named(name: &str) -> Option<Self> {
                match name {
                    $($name => Some(Self::$algorithm),)+
                    _ => None,
                }
            }
        }
    };
}
named!(SyncAlgorithm: "dissemination" => Dissemination, "binomial" => Gather, "central" => Central);
named!(AllReduceAlgorithm: "recursive_doubling" => RecursiveDoubling, "direct" => Direct, "central" => Central);
named!(AllGatherAlgorithm: "bruck" => Bruck, "ring" => Ring);

/// The largest vector that is given to a counter or sent beside a flag.
pub const SHORT_MAX_BYTES: usize = 8;

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
        let has_counter = facts.one_node && facts.counter;
        match facts.forced.sync {
            Some(Self::Central) if has_counter => Self::Central,
            Some(forced @ (Self::Dissemination | Self::Gather)) => forced,
            _ if !facts.oversubscribed => Self::Dissemination,
            _ if has_counter => Self::Central,
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
        let is_short = nbytes <= SHORT_MAX_BYTES;
        let fits_counter = facts.one_node && facts.counter && facts.shared_buffers && is_short;
        match facts.forced.all_reduce {
            Some(Self::Central) if fits_counter => Self::Central,
            Some(Self::RecursiveDoubling) if is_short || facts.shared_buffers => {
                Self::RecursiveDoubling
            }
            Some(Self::Direct) => Self::Direct,
            _ if !is_short && !facts.shared_buffers => Self::Direct,
            _ if !facts.one_node && share >= DIRECT_MIN_SHARE => Self::Direct,
            _ if !facts.one_node => Self::RecursiveDoubling,
            _ if facts.oversubscribed && fits_counter => Self::Central,
            // Two passes of the scheduler instead of one for each round.
            _ if facts.oversubscribed || !is_short => Self::Direct,
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
    pub const fn choose(nbytes: usize, facts: Facts) -> Self {
        match facts.forced.all_gather {
            Some(forced) => forced,
            None if nbytes < RING_MIN_BYTES => Self::Bruck,
            None => Self::Ring,
        }
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
pub fn all_gather(
    n: u32,
    me: u32,
    nbytes: usize,
    facts: Facts,
) -> impl Iterator<Item = Step> + Clone {
    AllGatherAlgorithm::choose(nbytes, facts).plan(n, me)
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

    const FORCED: Forced = Forced { sync: None, all_reduce: None, all_gather: None };
    const FACTS: Facts = Facts {
        one_node: true,
        oversubscribed: false,
        counter: true,
        shared_buffers: true,
        forced: FORCED,
    };

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
        assert_eq!(choose(SHORT_MAX_BYTES + 1, 7, FACTS), Direct);
        assert_eq!(choose(SHORT_MAX_BYTES, 7, FACTS), RecursiveDoubling);
        let shared = Facts { oversubscribed: true, ..FACTS };
        assert_eq!(choose(SHORT_MAX_BYTES, 7, shared), Central);
        assert_eq!(choose(SHORT_MAX_BYTES + 1, 7, shared), Direct);
        assert_eq!(choose(8, 7, Facts { counter: false, ..shared }), Direct);
        assert_eq!(choose(7 * DIRECT_MIN_SHARE, 7, apart), Direct);
        assert_eq!(choose(7 * DIRECT_MIN_SHARE - 1, 7, apart), RecursiveDoubling);
        let several_at_once = Facts { shared_buffers: false, ..apart };
        assert_eq!(choose(SHORT_MAX_BYTES + 1, 7, several_at_once), Direct);
        assert_eq!(choose(SHORT_MAX_BYTES, 7, several_at_once), RecursiveDoubling);
    }

    #[test]
    fn long_results_go_around_the_ring() {
        assert!(all_gather(7, 2, RING_MIN_BYTES - 1, FACTS).eq(bruck::all_gather(7, 2)));
        assert!(all_gather(7, 2, RING_MIN_BYTES, FACTS).eq(ring::all_gather(7, 2)));
    }

    #[test]
    fn what_is_forced_is_used_where_it_can_be() {
        let forced = |forced: Forced| Facts { forced, ..FACTS };
        let sync = |name| SyncAlgorithm::named(name).expect("a name");
        for name in ["dissemination", "binomial", "central"] {
            let facts = forced(Forced { sync: Some(sync(name)), ..FORCED });
            assert_eq!(SyncAlgorithm::choose(facts), sync(name));
        }
        let central = forced(Forced { sync: Some(sync("central")), ..FORCED });
        let apart = Facts { one_node: false, ..central };
        assert_eq!(SyncAlgorithm::choose(apart), SyncAlgorithm::Dissemination);
        for (name, nbytes) in [("recursive_doubling", 1 << 20), ("direct", 8), ("central", 8)] {
            let all_reduce = AllReduceAlgorithm::named(name);
            assert!(all_reduce.is_some());
            let facts = forced(Forced { all_reduce, ..FORCED });
            assert_eq!(Some(AllReduceAlgorithm::choose(nbytes, 7, facts)), all_reduce);
        }
        let all_gather = AllGatherAlgorithm::named("ring");
        let facts = forced(Forced { all_gather, ..FORCED });
        assert_eq!(Some(AllGatherAlgorithm::choose(8, facts)), all_gather);
        assert_eq!(AllGatherAlgorithm::named("auto"), None);
    }
}
