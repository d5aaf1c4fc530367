//! Lets a PE sleep until another one changes something, without a system call while no PE sleeps.
//!
//! Every PE has one doorbell: a counter on which the kernel can wait, and the number of its
//! sleepers. A PE that changes a word of the library on another PE stores the word first and then
//! rings. A PE that waits for such a word announces itself, checks the word once more, and sleeps.
//! Either the ringer sees the sleeper or the sleeper sees the change: the two sequentially
//! consistent fences exclude that both miss (Dekker's protocol, modeled in `ci/loom`).

use super::primitive::{AtomicU32, Ordering, fence};

/// The doorbell of one PE, at the start of its internal area.
pub(crate) struct Doorbell<'a> {
    /// Counts the rings; sleepers wait on this word.
    pub rings: &'a AtomicU32,
    /// The number of threads that sleep or are about to.
    pub(crate) sleepers: &'a AtomicU32,
}

impl Doorbell<'_> {
    /// Wakes the threads that sleep, if there are any. The caller has stored the change for which
    /// they may wait. `wake` wakes all threads that sleep on the word that it is given.
    #[inline]
    pub fn ring(&self, wake: impl FnOnce(&AtomicU32)) {
        // Between the change and the load of `sleepers`: the other fence is in `sleep_unless`.
        fence(Ordering::SeqCst);
        if self.sleepers.load(Ordering::Relaxed) != 0 {
            // Before the system call: a sleeper that has read the old number does not sleep then.
            self.rings.fetch_add(1, Ordering::Release);
            wake(self.rings);
        }
    }

    /// Sleeps once, unless `ready` returns true. `sleep` is given the word of the rings and its
    /// value; it returns when the value has changed, or earlier.
    pub(crate) fn sleep_unless(
        &self,
        ready: impl FnOnce() -> bool,
        sleep: impl FnOnce(&AtomicU32, u32),
    ) {
        // Before `ready`: a ring after this load, which may be for a change that `ready` misses,
        // changes the number, and the sleep ends at once.
        let seen = self.rings.load(Ordering::Acquire);

        // Between the announcement and the loads of `ready`: the other fence is in `ring`.
        self.sleepers.fetch_add(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);

        if !ready() {
            sleep(self.rings, seen);
        }

        // Relaxed: a ringer that still counts this thread wakes nobody, which is harmless.
        self.sleepers.fetch_sub(1, Ordering::Relaxed);
    }
}
