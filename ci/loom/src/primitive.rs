//! Loom's replacements of the synchronization primitives that files of Rushmem take from the
//! standard library.

pub(crate) use loom::sync::atomic::{
    AtomicBool, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
};
pub(crate) use loom::sync::{Mutex, MutexGuard};
use std::sync::LockResult;
use std::time::Duration;

/// Waits for a lock.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("a panic ends the model")
}

/// Takes a lock if it is free.
pub(crate) fn try_lock<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    mutex.try_lock().ok()
}

/// A condition variable with the waits of the standard library that loom lacks.
#[derive(Default)]
pub(crate) struct Condvar(loom::sync::Condvar);

/// A wait that has ended.
pub(crate) struct Waited;

impl Condvar {
    pub(crate) fn notify_one(&self) {
        self.0.notify_one();
    }

    /// Waits while the condition holds. loom has no time: a `limit` of zero is over at once, and
    /// any other one never, so that a lost notification is a deadlock, which loom reports.
    pub(crate) fn wait_timeout_while<'a, T>(
        &self,
        mut guard: MutexGuard<'a, T>,
        limit: Duration,
        mut condition: impl FnMut(&mut T) -> bool,
    ) -> LockResult<(MutexGuard<'a, T>, Waited)> {
        while condition(&mut guard) && !limit.is_zero() {
            guard = self.0.wait(guard).expect("a panic ends the model");
        }
        Ok((guard, Waited))
    }
}
