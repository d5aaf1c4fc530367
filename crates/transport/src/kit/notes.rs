//! Those who hold something back: requests that were not sent so far, or operations that nobody waits for. Whoever polls
//! next looks after them; at the latest the service thread does, see [`Attendance::call_soon`].
//!
//! It must never know what is held back. Small requests travel together at the price of a note, which is why adding one
//! takes a lock for a few instructions and allocates nothing in the long run.
//!
//! [`Attendance::call_soon`]: super::attendance::Attendance::call_soon

use super::lock::lock;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

/// A list of those to be looked after. Each is to be noted once, which is up to whoever adds it.
pub struct Notes<T> {
    /// Whether there may be any: all that most polls read.
    any: AtomicBool,
    list: Mutex<Vec<T>>,
}

impl<T> Default for Notes<T> {
    fn default() -> Notes<T> {
        Notes { any: AtomicBool::new(false), list: Mutex::default() }
    }
}

impl<T> Notes<T> {
    /// Adds one.
    pub fn add(&self, note: T) {
        lock(&self.list).push(note);
        self.any.store(true, Ordering::Relaxed);
    }

    /// Looks after each of those that are noted by now, outside the lock; the ones for which `keep` returns true stay noted.
    /// Whether any of these is left.
    pub fn look_after(&self, keep: impl FnMut(&mut T) -> bool) -> bool {
        if !self.any.load(Ordering::Relaxed) {
            return false;
        }
        // Before the list is taken: whoever adds one afterwards says so again.
        self.any.store(false, Ordering::Relaxed);
        let mut notes = std::mem::take(&mut *lock(&self.list));
        notes.retain_mut(keep);
        let is_left = !notes.is_empty();
        let mut list = lock(&self.list);
        // The older list has the room that was needed so far.
        notes.append(&mut list);
        *list = notes;
        drop(list);
        if is_left {
            self.any.store(true, Ordering::Relaxed);
        }
        is_left
    }

    /// Looks at those that are noted, under the lock.
    pub fn any(&self, is_one: impl FnMut(&T) -> bool) -> bool {
        lock(&self.list).iter().any(is_one)
    }

    /// Those that are noted, as something else.
    pub fn map<U>(&self, what: impl FnMut(&T) -> U) -> Vec<U> {
        lock(&self.list).iter().map(what).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_looked_after_again() {
        let notes = Notes::default();
        assert!(!notes.look_after(|_: &mut u32| unreachable!("nothing is noted")));
        (0..4).for_each(|note| notes.add(note));
        let even = |note: &mut u32| {
            notes.add(10 + *note);
            note.is_multiple_of(2)
        };
        assert!(notes.look_after(even));
        assert_eq!(notes.map(|&note| note), [0, 2, 10, 11, 12, 13]);
        let mut seen = 0;
        assert!(!notes.look_after(|_| {
            seen += 1;
            false
        }));
        assert_eq!(seen, 6);
        assert!(!notes.any(|_| true));
    }
}
