//! A lock for what one thread uses all the time and others now and then: for that thread it takes no atomic read-modify-write, which a
//! network's shortest operations take no longer than.
//!
//! The first thread that waits for the lock owns it. Others that only try take it from the owner by a system call that interrupts it, if it
//! is on a processor, so they do so rarely. As soon as a second thread waits for the lock it is an ordinary one for all.
//!
//! This file must never know what is locked.
#![allow(unsafe_code)]

use super::bias::Bias;
use super::lock::{lock, try_lock};
use crate::thread;
use std::cell::UnsafeCell;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// Shortest time between two claims: each takes some microseconds of the owner's. It is as long as operations may stay
/// unattended.
const BETWEEN_CLAIMS: Duration = Duration::from_micros(50);

/// Like a mutex.
pub struct BiasedLock<T> {
    bias: Bias,
    /// When the lock was last claimed from its owner.
    claims: Mutex<Option<Instant>>,
    value: UnsafeCell<T>,
}

// SAFETY: one thread at a time has a guard, as with a mutex.
unsafe impl<T: Send> Sync for BiasedLock<T> {}

/// The use of what is locked, until it is dropped.
pub struct Guard<'a, T> {
    lock: &'a BiasedLock<T>,
    /// `None` for the owner.
    claim: Option<Claim<'a>>,
    value: PhantomData<&'a mut T>,
}

/// Of another thread than the owner.
struct Claim<'a> {
    _claims: MutexGuard<'a, Option<Instant>>,
    /// Whose the lock is afterwards.
    owner: usize,
}

impl<T> BiasedLock<T> {
    /// A lock that nobody owns yet.
    pub fn new(value: T) -> BiasedLock<T> {
        BiasedLock { bias: Bias::new(), claims: Mutex::new(None), value: UnsafeCell::new(value) }
    }

    /// Waits for the lock.
    ///
    /// # Panics
    /// If this thread has it already.
    #[inline(always)]
    pub fn lock(&self) -> Guard<'_, T> {
        match self.own() {
            Some(guard) => guard,
            None => self.guard(self.enter_by_claims()),
        }
    }

    /// The lock, if this thread owns it and nobody has it: for a path that is short only then.
    #[inline(always)]
    pub fn own(&self) -> Option<Guard<'_, T>> {
        self.bias.enter(thread::number()).then(|| self.guard(None))
    }

    #[cold]
    #[inline(never)]
    fn enter_by_claims(&self) -> Option<Claim<'_>> {
        let claims = lock(&self.claims);
        let owner = self.bias.enter_by_claims(thread::number(), std::thread::yield_now)?;
        Some(Claim { _claims: claims, owner })
    }

    /// The lock, if it is free and was not claimed from its owner just before.
    pub fn try_lock(&self) -> Option<Guard<'_, T>> {
        if let Some(guard) = self.own() {
            return Some(guard);
        }
        let mut claims = try_lock(&self.claims)?;
        if self.bias.has_owner() {
            if claims.is_some_and(|last| last.elapsed() < BETWEEN_CLAIMS) {
                return None;
            }
            *claims = Some(Instant::now());
        }
        let owner = self.bias.claim()?;
        Some(self.guard(Some(Claim { _claims: claims, owner })))
    }

    /// The next thread that waits for the lock owns it, as at first.
    ///
    /// # Safety
    /// No thread has the lock or waits for it.
    pub unsafe fn disown(&self) {
        let _claims = lock(&self.claims);
        if self.bias.claim().is_some() {
            self.bias.disown();
        }
    }

    #[inline(always)]
    fn guard<'a>(&'a self, claim: Option<Claim<'a>>) -> Guard<'a, T> {
        Guard { lock: self, claim, value: PhantomData }
    }
}

impl<T> Drop for Guard<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        match &self.claim {
            None => self.lock.bias.leave(),
            Some(claim) => self.lock.bias.give_back(claim.owner),
        }
    }
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: this is the only guard.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T> DerefMut for Guard<'_, T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above.
        unsafe { &mut *self.lock.value.get() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};

    #[test]
    fn a_thread_has_it_once() {
        let one = BiasedLock::new(1);
        let mut guard = one.lock();
        assert!(one.try_lock().is_none());
        *guard += 1;
        drop(guard);
        assert_eq!(*one.try_lock().expect("it is free"), 2);
    }

    #[test]
    #[should_panic(expected = "no thread enters twice")]
    fn the_owner_does_not_wait_for_itself() {
        let one = BiasedLock::new(());
        let _guard = one.lock();
        one.lock();
    }

    #[test]
    fn others_try_seldom_and_not_beside_the_owner() {
        let one = BiasedLock::new(0);
        let others = || std::thread::scope(|scope| scope.spawn(|| one.try_lock().is_some()).join());
        let guard = one.lock();
        assert!(!others().expect("a thread"));
        drop(guard);
        std::thread::sleep(BETWEEN_CLAIMS);
        assert!(others().expect("a thread"));
        // Whoever owns it takes it at any time.
        assert!(one.try_lock().is_some() && one.try_lock().is_some());
    }

    /// Threads that all count with it: one or two that wait, one that tries.
    #[test]
    fn nobody_is_inside_beside_another() {
        const TRIES: u64 = 300;
        for waiting in 1..3 {
            let (one, is_over) = (BiasedLock::new(0u64), AtomicBool::new(false));
            let waits = || {
                let mut times = 0;
                while !is_over.load(Ordering::Relaxed) {
                    *one.lock() += 1;
                    times += 1;
                }
                times
            };
            let times: u64 = std::thread::scope(|scope| {
                let waiters: Vec<_> = (0..waiting).map(|_| scope.spawn(waits)).collect();
                let mut tried = 0;
                while tried < TRIES {
                    tried += one.try_lock().map_or(0, |mut n| {
                        *n += 1;
                        1
                    });
                }
                is_over.store(true, Ordering::Relaxed);
                waiters.into_iter().map(|waiter| waiter.join().expect("it ends")).sum()
            });
            assert_eq!(*one.lock(), times + TRIES);
        }
    }

    #[test]
    fn who_comes_next_owns_what_was_disowned() {
        let one = BiasedLock::new(());
        std::thread::scope(|scope| scope.spawn(|| drop(one.lock())).join()).expect("a thread");
        // SAFETY: the only other thread has ended.
        unsafe { one.disown() };
        drop(one.lock());
        assert_eq!(one.bias.has_owner(), super::super::primitive::has_heavy_barrier());
    }
}
