//! The algorithms of each operation: their names, the conditions under which they can be used, and
//! their plans.
//!
//! To add an algorithm, write its plan in this crate, add a variant here and rows in
//! `built_in.txt`, and describe it in the text of its setting (`crates/pe/src/settings.rs`) and in
//! docs/performance/collectives.md. `tests/plans` and `crates/shmem-c/tests/jobs/algorithms.rs`
//! test it.

use super::facts::{ChoiceFacts, SHORT_MAX_BYTES};
use crate::{
    LINE_BYTES, Step, binomial, bruck, central, dissemination, neighbor_exchange, pairwise,
    receive_buffer, recursive_doubling, ring, scatter_all_gather,
};
use std::fmt::Debug;

/// Maximum number of pieces in which recursive doubling reduces a vector. A piece fits a receive
/// buffer, and pieces are reduced one after another, so other algorithms are faster for longer
/// vectors.
const MAX_PIECES: usize = 4;

/// The limit of recursive doubling.
fn is_for_doubling(nbytes: usize, facts: &ChoiceFacts) -> bool {
    nbytes <= SHORT_MAX_BYTES.max(MAX_PIECES * facts.receive_buffer_bytes)
}

/// A function that returns true if an algorithm can be used for this number of bytes. The condition
/// on bytes of [`Row`](super::Row) defines which bytes count.
pub type Limit = fn(usize, &ChoiceFacts) -> bool;

/// One of the algorithms of an operation.
pub trait Algorithm: Copy + Debug + Eq + 'static {
    /// The name of the operation in tables.
    const OPERATION: &'static str;
    /// All algorithms of the operation, with the names that users type.
    const ALL: &'static [(&'static str, Self)];

    /// Returns the function that decides whether the algorithm can be used; `None` if it always
    /// can.
    fn limit(self) -> Option<Limit>;

    /// Returns the algorithm of a name.
    fn named(name: &str) -> Option<Self> {
        Self::ALL
            .iter()
            .find(|(known, _)| *known == name)
            .map(|&(_, algorithm)| algorithm)
    }

    /// Returns the name that users type.
    fn name(self) -> &'static str {
        let named = Self::ALL.iter().find(|(_, algorithm)| *algorithm == self);
        named.expect("every algorithm has a name").0
    }
}

/// Makes the enumeration `$algorithms` of the algorithms of `$operation`, from rows of the name
/// that users type and the variant. An algorithm that cannot always be used has its [`Limit`] after
/// `if`.
macro_rules! algorithms {
    ($(#[doc = $doc:literal])+ $algorithms:ident of $operation:ident;
        $($(#[doc = $about:literal])+ $name:literal => $algorithm:ident $(if $fits:expr)?,)+) => {
        $(#[doc = $doc])+
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $algorithms {
            $($(#[doc = $about])+ $algorithm,)+
        }

        impl Algorithm for $algorithms {
            const OPERATION: &'static str = stringify!($operation);
            const ALL: &'static [(&'static str, Self)] = &[$(($name, Self::$algorithm)),+];

            #[inline]
            fn limit(self) -> Option<Limit> {
                match self {
                    $(Self::$algorithm => None $(.or(Some($fits as Limit)))?,)+
                }
            }
        }
    };
}

algorithms! {
    /// The algorithms of a sync.
    SyncAlgorithm of sync;
    /// [`dissemination::sync`].
    "dissemination" => Dissemination,
    /// [`binomial::gather_sync`].
    "binomial" => Gather,
    /// [`central::sync`], if all members share memory.
    "central" => Central if |_, facts| facts.one_node(),
    /// [`two_level::sync`](crate::two_level::sync), on several nodes of which one has several
    /// members.
    "two_level" => TwoLevel if |_, facts| facts.has_levels(),
}

algorithms! {
    /// The algorithms of a broadcast.
    BroadcastAlgorithm of broadcast;
    /// [`binomial::broadcast`].
    "binomial" => Binomial,
    /// [`scatter_all_gather::broadcast`].
    "scatter_all_gather" => ScatterAllGather,
}

algorithms! {
    /// The algorithms of an all-reduce.
    AllReduceAlgorithm of reduce;
    /// [`recursive_doubling::all_reduce`](crate::recursive_doubling::all_reduce), for vectors of
    /// few receive buffers.
    "recursive_doubling" => RecursiveDoubling if is_for_doubling,
    /// The plan `rabenseifner::all_reduce`.
    "rabenseifner" => Rabenseifner,
    /// [`ring::all_reduce`].
    "ring" => Ring,
    /// The plan `direct::all_reduce`.
    "direct" => Direct,
    /// [`central::all_reduce`], if all members share memory.
    "central" => Central if |_, facts| facts.one_node(),
    /// The plans of [`two_level`](crate::two_level), on several nodes of which one has several
    /// members.
    "two_level" => TwoLevel if |_, facts| facts.has_levels(),
}

algorithms! {
    /// The algorithms of a reduction to a root.
    ReduceToAlgorithm of reduce_to;
    /// [`recursive_doubling::all_reduce`](crate::recursive_doubling::all_reduce), of which only the
    /// root keeps the result, for vectors of few receive buffers.
    "recursive_doubling" => RecursiveDoubling if is_for_doubling,
    /// Each member stores its vector in a receive buffer of the root, and the root combines them
    /// after a sync, if all members share memory and the buffer has room for all vectors.
    "gather" => Gather if |nbytes, facts| {
        facts.one_node()
            && facts.members > 1
            && facts.has_receive_buffers()
            && nbytes.saturating_mul(facts.members as usize) <= facts.receive_buffer_bytes
    },
    /// [`binomial::reduce`].
    "binomial" => Binomial if |_, facts| facts.has_receive_buffers(),
    /// The plan `direct::reduce_to`.
    "direct" => Direct,
    /// [`central::reduce_to`], if all members share memory.
    "central" => Central if |_, facts| facts.one_node(),
}

algorithms! {
    /// The algorithms of a reduce-scatter.
    ReduceScatterAlgorithm of reduce_scatter;
    /// An all-to-all of the blocks by [`AllToAllAlgorithm`], with `pairwise` in place of `bruck`,
    /// after which each member combines what it has received, for vectors of one receive buffer.
    "alltoall" => AllToAll if |nbytes, facts| {
        facts.members > 1
            && facts.has_receive_buffers()
            && nbytes <= facts.receive_buffer_bytes
    },
    /// [`recursive_doubling::all_reduce`](crate::recursive_doubling::all_reduce) of the blocks of
    /// all members, of which each member keeps its own, for vectors of one receive buffer.
    "recursive_doubling" => RecursiveDoubling
        if |nbytes, facts| nbytes <= facts.receive_buffer_bytes && facts.has_receive_buffers(),
    /// The plan `direct::reduce_scatter`.
    "direct" => Direct,
    /// [`central::reduce_scatter`], if all members share memory.
    "central" => Central if |_, facts| facts.one_node(),
}

algorithms! {
    /// The algorithms of an all-gather.
    AllGatherAlgorithm of collect;
    /// [`pairwise::all_gather_in_lines`], for short blocks if all members share memory.
    "lines" => Lines
        if |nbytes, facts| facts.lines && nbytes <= LINE_BYTES * facts.members as usize,
    /// [`pairwise::all_gather`](crate::pairwise::all_gather).
    "pairwise" => Pairwise,
    /// [`bruck::all_gather`].
    "bruck" => Bruck,
    /// [`recursive_doubling::all_gather`], for a power of two of members.
    "recursive_doubling" => RecursiveDoubling if |_, facts| facts.members.is_power_of_two(),
    /// [`ring::all_gather`].
    "ring" => Ring,
    /// [`neighbor_exchange::all_gather`], for an even number of members.
    "neighbor_exchange" => NeighborExchange if |_, facts| facts.members.is_multiple_of(2),
    /// [`central::all_gather`], if all members share memory.
    "central" => Central if |_, facts| facts.one_node(),
}

algorithms! {
    /// The algorithms of an all-to-all.
    AllToAllAlgorithm of alltoall;
    /// [`pairwise::all_to_all_in_lines`], for short blocks if all members share memory.
    "lines" => Lines if |nbytes, facts| facts.lines && nbytes <= LINE_BYTES,
    /// [`pairwise::all_to_all`](crate::pairwise::all_to_all).
    "pairwise" => Pairwise,
    /// [`bruck::all_to_all`], if the blocks of a round fit a receive buffer.
    "bruck" => Bruck if |nbytes, facts| {
        let parts = bruck::receive_buffer_parts(facts.members) as usize;
        let fits = nbytes.saturating_mul(parts) <= receive_buffer::MIN_BYTES;
        facts.has_receive_buffers() && facts.members > 1 && fits
    },
    /// [`central::all_to_all`], if all members share memory.
    "central" => Central if |_, facts| facts.one_node(),
}

algorithms! {
    /// The algorithms of a gather.
    GatherAlgorithm of gather;
    /// [`pairwise::gather`].
    "pairwise" => Pairwise if |_, facts| facts.pair_flags,
    /// The plan `direct::gather`.
    "direct" => Direct,
}

algorithms! {
    /// The algorithms of a scatter.
    ScatterAlgorithm of scatter;
    /// [`pairwise::scatter`].
    "pairwise" => Pairwise if |_, facts| facts.pair_flags,
    /// The plan `direct::scatter`.
    "direct" => Direct,
}

algorithms! {
    /// The algorithms of a scan.
    ScanAlgorithm of scan;
    /// [`recursive_doubling::inclusive_scan`](crate::recursive_doubling::inclusive_scan) and
    /// [`exclusive_scan`](crate::recursive_doubling::exclusive_scan).
    "recursive_doubling" => RecursiveDoubling if |_, facts| facts.has_receive_buffers(),
    /// The plan `direct::scan`.
    "direct" => Direct,
    /// [`central::scan`], if all members share memory.
    "central" => Central if |_, facts| facts.one_node(),
}

impl SyncAlgorithm {
    /// Returns the plan of a sync by this algorithm. For two levels, whose plan needs the nodes,
    /// returns the plan of the binomial tree on one level instead.
    pub fn plan(self, n: u32, me: u32) -> impl Iterator<Item = Step> + Clone {
        match self {
            Self::Dissemination => SyncPlan::Dissemination(dissemination::sync(n, me)),
            Self::Gather | Self::TwoLevel => SyncPlan::Gather(binomial::gather_sync(n, me)),
            Self::Central => SyncPlan::Central(central::sync(n)),
        }
    }
}

impl BroadcastAlgorithm {
    /// Returns the plan of a broadcast by this algorithm. In the plan of the binomial tree the
    /// vector is one part, in the other one it has `parts` parts.
    pub fn plan(
        self,
        n: u32,
        me: u32,
        root: u32,
        parts: u32,
    ) -> impl Iterator<Item = Step> + Clone {
        match self {
            Self::Binomial => BroadcastPlan::Binomial(binomial::broadcast(n, me, root)),
            Self::ScatterAllGather => {
                let plan = scatter_all_gather::broadcast(n, me, root, parts);
                BroadcastPlan::ScatterAllGather(plan)
            }
        }
    }
}

impl AllGatherAlgorithm {
    /// Returns the plan of an all-gather by this algorithm.
    pub fn plan(self, n: u32, me: u32) -> impl Iterator<Item = Step> + Clone {
        match self {
            Self::Lines => AllGatherPlan::Lines(pairwise::all_gather_in_lines(n, me)),
            Self::Pairwise => AllGatherPlan::Pairwise(pairwise::all_gather(n, me)),
            Self::Bruck => AllGatherPlan::Bruck(bruck::all_gather(n, me)),
            Self::RecursiveDoubling => {
                AllGatherPlan::RecursiveDoubling(recursive_doubling::all_gather(n, me))
            }
            Self::Ring => AllGatherPlan::Ring(ring::all_gather(n, me)),
            Self::NeighborExchange => {
                AllGatherPlan::NeighborExchange(neighbor_exchange::all_gather(n, me))
            }
            Self::Central => AllGatherPlan::Central(central::all_gather(n, me)),
        }
    }
}

/// Makes the enumeration `$plans`, which is the plan of one of several algorithms, without an
/// allocation.
macro_rules! plans {
    ($($plans:ident: $($algorithm:ident)+;)+) => {$(
        #[derive(Clone)]
        enum $plans<$($algorithm),+> {
            $($algorithm($algorithm),)+
        }

        impl<$($algorithm: Iterator<Item = Step>),+> Iterator for $plans<$($algorithm),+> {
            type Item = Step;

            fn next(&mut self) -> Option<Step> {
                match self {
                    $(Self::$algorithm(plan) => plan.next(),)+
                }
            }

            // `for_each` on the plan of one algorithm is faster than calls of `next`, each of which
            // would select the algorithm again.
            fn fold<B, F: FnMut(B, Step) -> B>(self, start: B, f: F) -> B {
                match self {
                    $(Self::$algorithm(plan) => plan.fold(start, f),)+
                }
            }
        }
    )+};
}

plans! {
    SyncPlan: Dissemination Gather Central;
    BroadcastPlan: Binomial ScatterAllGather;
    AllGatherPlan: Lines Pairwise Bruck RecursiveDoubling Ring NeighborExchange Central;
}
