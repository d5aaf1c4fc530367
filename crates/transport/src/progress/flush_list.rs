//! A list of objects with operations that calls have left unfinished: requests that are held back
//! to be sent together, and operations for which no thread waits. The thread that polls next
//! completes them, at the latest the service thread: see [`ProgressState::request_flush`].
//!
//! Adding an entry takes a lock for a few instructions and, once the list has grown, allocates
//! nothing: holding a request back must be cheaper than sending it.
//!
//! [`ProgressState::request_flush`]: super::state::ProgressState::request_flush

use super::primitive::{AtomicUsize, Mutex, Ordering, lock};

/// A list of issuers or connections with unfinished operations. The caller ensures that each is in
/// the list only once.
pub struct FlushList<T> {
    /// The number of entries, including those that a thread is finishing. It changes under the
    /// lock; most polls read only this. All accesses are relaxed, since the lock orders the
    /// entries. If a thread misses an entry just added, the flush that the call then requests
    /// finds it.
    n: AtomicUsize,
    list: Mutex<Vec<T>>,
}

impl<T> Default for FlushList<T> {
    fn default() -> FlushList<T> {
        FlushList {
            n: AtomicUsize::new(0),
            list: Mutex::default(),
        }
    }
}

impl<T> FlushList<T> {
    /// Adds an entry.
    pub fn add(&self, entry: T) {
        let mut list = lock(&self.list);
        list.push(entry);
        // No atomic addition, which would take longer: only threads with the lock store `n`.
        let n = self.n.load(Ordering::Relaxed);
        self.n.store(n + 1, Ordering::Relaxed);
    }

    /// Returns true if there are no entries, and no thread is finishing one.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.n.load(Ordering::Relaxed) == 0
    }

    /// Calls `keep` outside the lock for each entry that is in the list now, to finish it. An entry
    /// stays if `keep` returns true. Returns how many entries there are then: those that stay,
    /// those that were added, and those that another thread is finishing or has just kept.
    pub fn finish(&self, keep: impl FnMut(&mut T) -> bool) -> usize {
        if self.is_empty() {
            return 0;
        }

        let mut entries = std::mem::take(&mut *lock(&self.list));
        let n_taken = entries.len();
        entries.retain_mut(keep);
        let n_finished = n_taken - entries.len();

        // Entries may have been added meanwhile, to a list without memory of its own. The list that
        // was taken has memory for as many entries as there were, so it is the one that stays.
        let mut list = lock(&self.list);
        entries.append(&mut list);
        *list = entries;

        let n = self.n.load(Ordering::Relaxed) - n_finished;
        self.n.store(n, Ordering::Relaxed);
        n
    }

    /// Returns true if `is_one` returns true for an entry, or if another thread is finishing some
    /// entries, of which nothing is known. Calls `is_one` under the lock.
    pub fn any(&self, is_one: impl FnMut(&T) -> bool) -> bool {
        let list = lock(&self.list);
        self.is_partial(&list) || list.iter().any(is_one)
    }

    /// Returns the results of `what` for all entries; `None` if another thread is finishing some of
    /// them. Calls `what` under the lock.
    pub fn map<U>(&self, what: impl FnMut(&T) -> U) -> Option<Vec<U>> {
        let list = lock(&self.list);
        if self.is_partial(&list) {
            return None;
        }
        Some(list.iter().map(what).collect())
    }

    /// Returns true if another thread is finishing some entries, which the locked list lacks.
    fn is_partial(&self, list: &[T]) -> bool {
        list.len() < self.n.load(Ordering::Relaxed)
    }
}
