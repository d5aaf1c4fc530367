//! The numbers of messages between two PEs, whatever team sends them.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

/// The numbers of messages between this PE and another one.
#[derive(Debug, Default)]
pub(crate) struct PairCounts {
    /// Signals on `Edge::Pair`.
    pub(super) sent: AtomicU64,
    pub(super) taken: AtomicU64,
    /// Signals on `Edge::Pair` with a short vector.
    pub(super) short_sent: AtomicUsize,
    pub(super) short_taken: AtomicUsize,
    /// Messages on `Edge::Line`.
    pub(super) lines_sent: AtomicU64,
    pub(super) lines_taken: AtomicU64,
}

/// Adds 1 to a count of a pair and returns the new value. Uses no locked instruction, since one
/// collective at a time uses these counts.
#[inline]
pub(super) fn increment(count: &AtomicU64) -> u64 {
    let next = count.load(Relaxed) + 1;
    count.store(next, Relaxed);
    next
}
