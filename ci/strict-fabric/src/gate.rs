//! A lock that costs little where nobody else wants it: what it protects is held for less than a microsecond.
#![allow(unsafe_code)]

use std::cell::UnsafeCell;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, Ordering};

/// Tries before a thread that waits leaves its processor to others.
const TRIES: u32 = 100;

/// A value that one thread at a time uses.
#[derive(Default)]
pub(crate) struct Gate<T> {
    taken: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: the value is reached only by who has the gate.
unsafe impl<T: Send> Sync for Gate<T> {}

impl<T> Gate<T> {
    pub(crate) fn new(value: T) -> Gate<T> {
        Gate { taken: AtomicBool::new(false), value: UnsafeCell::new(value) }
    }

    /// Waits for the value.
    #[inline]
    pub(crate) fn enter(&self) -> Inside<'_, T> {
        if self.taken.swap(true, Ordering::Acquire) {
            self.wait();
        }
        Inside { gate: self }
    }

    #[cold]
    fn wait(&self) {
        let mut tries = 0;
        while self.taken.swap(true, Ordering::Acquire) {
            tries += 1;
            if tries % TRIES == 0 {
                std::thread::yield_now();
            }
            std::hint::spin_loop();
        }
    }
}

/// The value, until it is dropped.
pub(crate) struct Inside<'a, T> {
    gate: &'a Gate<T>,
}

impl<T> Deref for Inside<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: only who has the gate has this.
        unsafe { &*self.gate.value.get() }
    }
}

impl<T> DerefMut for Inside<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: only who has the gate has this.
        unsafe { &mut *self.gate.value.get() }
    }
}

impl<T> Drop for Inside<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.gate.taken.store(false, Ordering::Release);
    }
}
