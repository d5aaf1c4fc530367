//! Flags without a lock between the threads of a PE and its service thread: they decide whether a
//! call that leaves operations unfinished sets the timer of the service thread, and whether the
//! service thread may sleep on its timer alone.
//!
//! Each side stores a flag, executes a fence, and loads the other side's flag, so that at least one
//! of them sees what the other has stored (Dekker). `ci/loom` tries every execution.

use super::primitive::{AtomicBool, Ordering, fence};

/// The flags of one service thread: by default nothing is pending, and it has not backed off.
///
/// Their accesses are relaxed: where a load must not pass the store before it, a fence is between
/// them. `end_back_off` and `set_pending` need none, because a thread that misses one of them only
/// sets the timer in vain.
#[derive(Debug, Default)]
pub struct Wakeup {
    /// A thread that polled has stopped, so the service thread must take over.
    stopped_polling: AtomicBool,
    /// The service thread sleeps on its timer alone.
    backed_off: AtomicBool,
    /// The service thread will flush soon, or the timer is set for it.
    pending: AtomicBool,
}

impl Wakeup {
    /// Records that the calling thread stops polling. Calls `ring`, which wakes the service thread,
    /// if that sleeps on its timer alone.
    pub fn stop_polling(&self, ring: impl FnOnce()) {
        self.stopped_polling.store(true, Ordering::Relaxed);
        // Either this thread sees `backed_off`, or the service thread sees `stopped_polling`.
        fence(Ordering::SeqCst);
        if self.backed_off.load(Ordering::Relaxed) {
            ring();
        }
    }

    /// Returns true if the service thread, which calls this, may sleep on its timer alone: not if a
    /// thread has stopped polling since the last call.
    pub fn back_off(&self) -> bool {
        self.backed_off.store(true, Ordering::Relaxed);
        // The partner of the fence in `stop_polling`.
        fence(Ordering::SeqCst);
        let has_stopped = self.stopped_polling.swap(false, Ordering::Relaxed);

        if has_stopped {
            self.end_back_off();
        }
        !has_stopped
    }

    /// Records that the service thread, the caller, does not sleep on its timer alone any more.
    pub fn end_back_off(&self) {
        self.backed_off.store(false, Ordering::Relaxed);
    }

    /// Calls `set_timer` unless a wakeup is pending. Called after something unfinished was added.
    pub fn request(&self, set_timer: impl FnOnce()) {
        // Either this thread sees that none is pending, or the service thread sees what was added.
        fence(Ordering::SeqCst);
        if !self.pending.load(Ordering::Relaxed) {
            self.pending.store(true, Ordering::Relaxed);
            set_timer();
        }
    }

    /// Records that the service thread, the caller, will flush soon: calls need not set the timer.
    pub fn set_pending(&self) {
        self.pending.store(true, Ordering::Relaxed);
    }

    /// Records that a later addition must set the timer. The service thread calls this before the
    /// last flush before a sleep.
    pub fn clear_pending(&self) {
        self.pending.store(false, Ordering::Relaxed);
        // The partner of the fence in `request`: the flush follows.
        fence(Ordering::SeqCst);
    }
}
