//! What calls leave unfinished when they return: requests that are held back to travel together, or operations that nobody
//! waits for. Whoever polls next finishes it; at the latest the service thread does, see [`Attendance::call_soon`].
//!
//! It must never know what is unfinished. Adding an entry takes a lock for a few instructions and allocates nothing in the
//! long run, since requests are only held back where that is cheaper than to send them.
//!
//! [`Attendance::call_soon`]: super::attendance::Attendance::call_soon

use super::lock::lock;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

/// A list of what is unfinished (connections, workers). That there is one entry for each is up to whoever adds it.
pub struct Unfinished<T> {
    /// Whether there may be any: all that most polls read.
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

    /// Calls `keep` for each entry that there is by now, outside the lock, to finish it; entries for which it returns true
    /// stay. Returns whether any of them stays.
    pub fn finish(&self, keep: impl FnMut(&mut T) -> bool) -> bool {
        if !self.any.load(Ordering::Relaxed) {
            return false;
        }
        // Before the list is taken: whoever adds one afterwards says so again.
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

    /// Whether this is so of an entry. It is asked under the lock.
    pub fn any(&self, is_one: impl FnMut(&T) -> bool) -> bool {
        lock(&self.list).iter().any(is_one)
    }

    /// Something of each entry. It is asked for under the lock.
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
