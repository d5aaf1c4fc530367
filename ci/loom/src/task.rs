//! A task whose waker is called.

use loom::sync::Notify;
use loom::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::sync::Arc;
use std::task::Wake;

/// A task that sleeps until its waker is called.
#[derive(Default)]
pub(crate) struct Task {
    n_woken: AtomicU32,
    woken: Notify,
}

impl Task {
    pub(crate) fn sleep(&self) {
        while self.n_woken() == 0 {
            self.woken.wait();
        }
    }

    pub(crate) fn n_woken(&self) -> u32 {
        self.n_woken.load(SeqCst)
    }
}

impl Wake for Task {
    fn wake(self: Arc<Self>) {
        self.n_woken.fetch_add(1, SeqCst);
        self.woken.notify();
    }
}
