//! What calls leave unfinished when they return: requests that are held back to be sent together,
//! and operations for which no thread waits. The thread that polls next completes it, at the latest
//! the service thread: see [`ProgressState::request_flush`].
//!
//! Adding an entry takes a lock for a few instructions and, once the list has grown, allocates
//! nothing: holding a request back must be cheaper than sending it.
//!
//! [`ProgressState::request_flush`]: super::progress_state::ProgressState::request_flush

use super::lock::lock;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

/// A list of connections or workers with unfinished operations. The caller ensures that each is in
/// it only once.
pub struct Unfinished<T> {
    /// Whether there may be entries. Most polls read only this.
    any: AtomicBool,
    list: Mutex<Vec<T>>,
}

impl<T> Default for Unfinished<T> {
    fn default() -> Unfinished<T> {
        Unfinished { any: AtomicBool::new(false), list: Mutex::default() }
    }
}

impl<T> Unfinished<T> {
    /// Adds an entry.
    pub fn add(&self, entry: T) {
        lock(&self.list).push(entry);
        self.any.store(true, Ordering::Relaxed);
    }

    /// Calls `keep` outside the lock for each entry that is in the list now, to finish it. An entry
    /// stays if `keep` returns true. Returns whether any entry stays.
    pub fn finish(&self, keep: impl FnMut(&mut T) -> bool) -> bool {
        if !self.any.load(Ordering::Relaxed) {
            return false;
        }
        // Before the list is taken: a thread that adds one afterwards sets it again.
        self.any.store(false, Ordering::Relaxed);
        let mut entries = std::mem::take(&mut *lock(&self.list));
        entries.retain_mut(keep);
        let is_left = !entries.is_empty();
        let mut list = lock(&self.list);
        // The older list has the room that was needed so far.
        entries.append(&mut list);
        *list = entries;
        drop(list);
        if is_left {
            self.any.store(true, Ordering::Relaxed);
        }
        is_left
    }

    /// Whether `is_one` holds for any entry. It is called under the lock.
    pub fn any(&self, is_one: impl FnMut(&T) -> bool) -> bool {
        lock(&self.list).iter().any(is_one)
    }

    /// The results of `what` for all entries. It is called under the lock.
    pub fn map<U>(&self, what: impl FnMut(&T) -> U) -> Vec<U> {
        lock(&self.list).iter().map(what).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_comes_again() {
        let unfinished = Unfinished::default();
        assert!(!unfinished.finish(|_: &mut u32| unreachable!("there is nothing")));
        (0..4).for_each(|entry| unfinished.add(entry));
        let even = |entry: &mut u32| {
            unfinished.add(10 + *entry);
            entry.is_multiple_of(2)
        };
        assert!(unfinished.finish(even));
        assert_eq!(unfinished.map(|&entry| entry), [0, 2, 10, 11, 12, 13]);
        let mut seen = 0;
        assert!(!unfinished.finish(|_| {
            seen += 1;
            false
        }));
        assert_eq!(seen, 6);
        assert!(!unfinished.any(|_| true));
    }
}
