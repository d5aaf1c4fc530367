//! Locks (OpenSHMEM 1.6, §9.13), which one PE holds at a time, with guards.
#![allow(unsafe_code)]

use crate::element::{Element, IsElement};
use crate::job::Shmem;
use crate::symmetric::view::Sym;
use crate::threads::Threads;
use core::ffi::c_long;
use rushmem_runtime::lock;
use std::fmt;
use std::marker::PhantomData;

/// An element that is a lock of the whole job (§9.13.1), free at first. There are no values of this
/// type outside of symmetric memory.
///
/// ```
/// use shmem::Lock;
/// shmem::symmetric! {
///     static TURN: Lock;
/// }
///
/// let shmem = shmem::init();
/// let own = shmem.zeroed::<Lock>();
/// {
///     let _guard = shmem.lock(TURN.get(&shmem));
///     let _other = shmem.lock(&own);
/// }
/// ```
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct Lock(c_long);

impl IsElement for Lock {}

// SAFETY: a `Lock` is laid out as an integer, of which all bits are values, without padding.
unsafe impl Element for Lock {}

/// The guard of a lock that this PE holds. Its drop completes the operations issued on the default
/// context and releases the lock (`shmem_clear_lock`, §9.13.1). If a guard is leaked, its lock is
/// never released: the finalization of the library then warns, or, if another PE waits for the
/// lock, ends the job with a message.
#[doc(alias = "shmem_clear_lock")]
#[must_use = "a lock is free again when its guard is dropped"]
pub struct LockGuard<'a> {
    lock: &'a Sym<Lock>,
    /// Keeps the guard on the thread that took the lock, which must release it.
    thread: PhantomData<*const ()>,
}

impl<C: Threads> Shmem<C> {
    /// Waits for a lock and takes it. PEs get the lock in the order of their calls
    /// (`shmem_set_lock`, §9.13.1). Ends the job with a message if this thread holds the lock
    /// already.
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let (lock, count) = (shmem.zeroed::<shmem::Lock>(), shmem.boxed(0));
    /// let count = count.on(shmem.pe(0));
    /// let guard = shmem.lock(&lock);
    /// count.write(count.read() + 1);
    /// drop(guard);                            // completes the write
    /// shmem.barrier_all();
    /// assert_eq!(count.read(), shmem.n_pes());
    /// ```
    #[doc(alias = "shmem_set_lock")]
    pub fn lock<'a>(&'a self, lock: &'a Sym<Lock>) -> LockGuard<'a> {
        // SAFETY: a `Sym<Lock>` is an aligned word of a symmetric object, which only lock routines
        // access, and which was zero at first.
        unsafe { lock::set(call!("Shmem::lock"), lock.as_ptr().cast::<c_long>()) };
        LockGuard {
            lock,
            thread: PhantomData,
        }
    }

    /// Takes a lock if it is free, otherwise returns `None` at once (`shmem_test_lock`, §9.13.1).
    ///
    /// ```
    /// # let shmem = shmem::init();
    /// let lock = shmem.zeroed::<shmem::Lock>();
    /// let guard = shmem.try_lock(&lock);
    /// let holders = shmem.world().all_reduce(u32::from(guard.is_some()), shmem::Sum);
    /// assert_eq!(holders, 1);
    /// ```
    #[doc(alias = "shmem_test_lock")]
    pub fn try_lock<'a>(&'a self, lock: &'a Sym<Lock>) -> Option<LockGuard<'a>> {
        let call = call!("Shmem::try_lock");
        // SAFETY: a `Sym<Lock>` is an aligned word of a symmetric object, which only lock routines
        // access, and which was zero at first.
        let is_held = unsafe { lock::test(call, lock.as_ptr().cast::<c_long>()) } != 0;
        if is_held {
            return None;
        }
        Some(LockGuard {
            lock,
            thread: PhantomData,
        })
    }
}

impl Drop for LockGuard<'_> {
    fn drop(&mut self) {
        let call = call!("drop of a lock's guard");
        // SAFETY: a `Sym<Lock>` is an aligned word of a symmetric object, which only lock routines
        // access.
        unsafe { lock::clear(call, self.lock.as_ptr().cast::<c_long>()) };
    }
}

/// Formats the type only: the lock's word is the library's.
impl fmt::Debug for Lock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Lock(..)")
    }
}

impl fmt::Debug for LockGuard<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LockGuard({:?})", self.lock)
    }
}
