//! Lets a PE sleep until another one changes something, without a system call while no PE sleeps.
//!
//! Every PE has one doorbell: a counter on which the kernel can wait, and the number of its
//! sleepers. A PE that changes a word of the library on another PE stores the word first and then
//! rings. A PE that waits for such a word announces itself, checks the word once more, and sleeps.
//! Either the ringer sees the sleeper or the sleeper sees the change: the two sequentially
//! consistent fences exclude that both miss (Dekker's protocol, modeled in `ci/loom`).

use crate::memory::primitive::{AtomicU32, Ordering, fence};

/// One PE's doorbell; lives in its internal area.
pub(crate) struct Doorbell<'a> {
    /// Counts the rings; sleepers wait on this word.
    pub(crate) rings: &'a AtomicU32,
    /// The number of threads that sleep or are about to.
    pub(crate) sleepers: &'a AtomicU32,
}

impl Doorbell<'_> {
    /// Wakes sleepers, after the change for which they may wait was stored. `wake` wakes all that
    /// sleep on the word.
    #[inline]
    pub(crate) fn ring(&self, wake: impl FnOnce(&AtomicU32)) {
        fence(Ordering::SeqCst);
        if self.sleepers.load(Ordering::Relaxed) != 0 {
            self.rings.fetch_add(1, Ordering::Release);
            wake(self.rings);
        }
    }

    /// Sleeps until `ready`, which is called again after every ring. `sleep` returns when the word
    /// no longer has the given value, or at any time before.
    pub(crate) fn sleep_until(
        &self,
        mut ready: impl FnMut() -> bool,
        mut sleep: impl FnMut(&AtomicU32, u32),
    ) {
        loop {
            let heard = self.rings.load(Ordering::Acquire);
            self.sleepers.fetch_add(1, Ordering::Relaxed);
            fence(Ordering::SeqCst);
            let done = ready();
            if !done {
                sleep(self.rings, heard);
            }
            self.sleepers.fetch_sub(1, Ordering::Relaxed);
            if done {
                return;
            }
        }
    }
}
