//! Distributed locks (OpenSHMEM 1.6, §9.13): the queue of Mellor-Crummey and Scott, in one word per PE.
//!
//! J. M. Mellor-Crummey, M. L. Scott: Algorithms for scalable synchronization on shared-memory
//! multiprocessors. ACM Transactions on Computer Systems 9 (1), 1991. A lock has a word on every PE. One
//! field of it, on the lock's home PE, names the last PE of the queue; the other one is the own node of
//! the queue: whether this PE waits, and which PE is next. So PEs get the lock in the order of their
//! calls, each looks at its own word alone, and zero is a free lock. How the fields lie in C's `long` and
//! in Fortran's INTEGER is for [`word`] to know.

mod word;

pub use word::LockWord;

use crate::call::{Call, fail};
use crate::ctx::World;
use crate::{address, job, order, patience};
use core::ffi::c_int;
use word::Place;

/// A lock as this PE has it.
struct Lock<T> {
    call: Call,
    word: *mut T,
    home: c_int,
    me: u32,
}

impl<T: LockWord> Lock<T> {
    fn new(call: Call, word: *mut T) -> (Lock<T>, &'static job::Job) {
        let job = job::require(call);
        let place = address::symmetric(call, "lock", word.cast(), size_of::<T>());
        if job.n_pes > T::MOST_PES {
            fail!(
                call,
                "a lock of {} bytes serves {} PEs at most, and the job has {}; use a lock of 8 bytes \
                 from C",
                size_of::<T>(),
                T::MOST_PES,
                job.n_pes
            );
        }
        // Locks are spread over the PEs, so that many of them do not all burden the same one.
        let home = ((place.offset() / size_of::<T>()) % job.n_pes as usize) as c_int;
        (Lock { call, word, home, me: job.me().0 }, job)
    }

    fn on(&self, pe: c_int) -> Place<T> {
        Place { call: self.call, word: self.word, pe }
    }

    /// The number of this PE in a field.
    fn name(&self) -> u32 {
        self.me + 1
    }

    fn own(&self) -> Place<T> {
        self.on(self.me as c_int)
    }

    fn own_node(&self) -> u32 {
        // SAFETY: the lock was checked to be symmetric, and is aligned by contract.
        unsafe { T::node(self.word) }
    }
}

/// `shmem_set_lock`: wait for the lock and take it, in the order of the calls.
///
/// # Safety
/// `lock` is aligned, and was zero on all PEs before its first use.
pub unsafe fn set<T: LockWord>(call: Call, lock: *mut T) {
    let (lock, job) = Lock::new(call, lock);
    // SAFETY: aligned by contract.
    unsafe { T::reset_node(lock.own(), T::WAITING) };
    // SAFETY: as above.
    let last = unsafe { T::swap_tail(lock.on(lock.home), lock.name()) };
    if last != 0 {
        // SAFETY: as above; whoever was last waits for its next PE in its own node.
        unsafe { T::add_to_node(lock.on(last as c_int - 1), lock.name()) };
        patience::until_seen(job, || lock.own_node() & T::WAITING == 0);
    }
}

/// `shmem_test_lock`: 0 if the lock was free and is taken now, 1 if it was not.
///
/// # Safety
/// As [`set`].
pub unsafe fn test<T: LockWord>(call: Call, lock: *mut T) -> c_int {
    let (lock, _) = Lock::new(call, lock);
    // SAFETY: aligned by contract.
    unsafe { T::reset_node(lock.own(), 0) };
    // SAFETY: as above.
    let last = unsafe { T::compare_swap_tail(lock.on(lock.home), 0, lock.name()) };
    c_int::from(last != 0)
}

/// `shmem_clear_lock`: complete what was issued on the default context and hand the lock on.
///
/// # Safety
/// As [`set`]; this PE holds the lock.
pub unsafe fn clear<T: LockWord>(call: Call, lock: *mut T) {
    let (lock, job) = Lock::new(call, lock);
    order::quiet(lock.call, World);
    if lock.own_node() & !T::WAITING == 0 {
        // SAFETY: aligned by contract.
        let last = unsafe { T::compare_swap_tail(lock.on(lock.home), lock.name(), 0) };
        if last == lock.name() {
            return;
        }
        patience::until_seen(job, || lock.own_node() & !T::WAITING != 0);
    }
    let next = (lock.own_node() & !T::WAITING) as c_int - 1;
    // SAFETY: aligned by contract.
    unsafe { T::stop_waiting(lock.on(next)) };
}
