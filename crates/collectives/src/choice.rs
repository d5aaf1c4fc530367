//! Which algorithm to use where there are several.
//!
//! A choice follows from facts that are the same on every PE, else members would run plans that do
//! not fit together. It must never look at load, time, or anything a PE knows of itself alone.

use crate::{Step, binomial, bruck, dissemination, ring};

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
}

impl SyncAlgorithm {
    /// The better one. `oversubscribed`: whether PEs of the team share cores, anywhere.
    pub const fn choose(oversubscribed: bool) -> Self {
        if oversubscribed { Self::Gather } else { Self::Dissemination }
    }

    /// The plan of a sync by this algorithm.
    pub fn plan(self, n: u32, me: u32) -> impl Iterator<Item = Step> + Clone {
        match self {
            Self::Dissemination => Either::Left(dissemination::sync(n, me)),
            Self::Gather => Either::Right(binomial::gather_sync(n, me)),
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
pub fn sync(n: u32, me: u32, oversubscribed: bool) -> impl Iterator<Item = Step> + Clone {
    SyncAlgorithm::choose(oversubscribed).plan(n, me)
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

    #[test]
    fn pes_that_share_cores_sync_by_a_tree() {
        assert!(sync(7, 2, false).eq(dissemination::sync(7, 2)));
        assert!(sync(7, 2, true).eq(binomial::gather_sync(7, 2)));
    }

    #[test]
    fn long_results_go_around_the_ring() {
        assert!(all_gather(7, 2, RING_MIN_BYTES - 1).eq(bruck::all_gather(7, 2)));
        assert!(all_gather(7, 2, RING_MIN_BYTES).eq(ring::all_gather(7, 2)));
    }
}
