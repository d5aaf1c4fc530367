//! Distributed locks (OpenSHMEM 1.6, §9.13): the queue of Mellor-Crummey and Scott, in one `long`.
//!
//! J. M. Mellor-Crummey, M. L. Scott: Algorithms for scalable synchronization on shared-memory
//! multiprocessors. ACM Transactions on Computer Systems 9 (1), 1991. A lock has a word of 8 bytes on
//! every PE. Its first half, on the lock's home PE, names the last PE of the queue; its second half is the
//! own node of the queue: whether this PE waits, and which PE is next. So PEs get the lock in the order
//! of their calls, each looks at its own word alone, and zero is a free lock.

use crate::call::Call;
use crate::ctx::World;
use crate::{address, amo, job, order, patience};
use core::ffi::{c_int, c_long};
use rushmem_transport::mem::{Amo, Word};

/// Set in a node while its PE waits; the other bits are the next PE plus one, or zero.
const WAITING: u32 = 1 << 31;

/// A lock as this PE has it.
struct Lock {
    call: Call,
    /// Last PE of the queue plus one, on `home`.
    tail: *mut u32,
    /// This PE's node.
    node: *mut u32,
    home: c_int,
    me: u32,
}

impl Lock {
    fn new(call: Call, lock: *mut c_long) -> (Lock, &'static job::Job) {
        let job = job::require(call);
        let place = address::symmetric(call, "lock", lock.cast(), size_of::<c_long>());
        let tail = lock.cast::<u32>();
        // Locks are spread over the PEs, so that many of them do not all burden the same one.
        let home = ((place.offset() / size_of::<c_long>()) % job.n_pes as usize) as c_int;
        let me = job.me().0;
        (Lock { call, tail, node: tail.wrapping_add(1), home, me }, job)
    }

    fn own_node(&self) -> u32 {
        // SAFETY: the lock was checked to be symmetric; a `long` holds two aligned words.
        unsafe { u32::load_acquire(self.node) }
    }

    fn reset_node(&self, value: u32) {
        // SAFETY: as above.
        unsafe { u32::set(self.node, value) }
    }
}

/// `shmem_set_lock`: wait for the lock and take it, in the order of the calls.
///
/// # Safety
/// `lock` is aligned, and was zero on all PEs before its first use.
pub unsafe fn set(call: Call, lock: *mut c_long) {
    let (lock, job) = Lock::new(call, lock);
    lock.reset_node(WAITING);
    // SAFETY: half of a `long` is aligned.
    let last = unsafe { amo::swap(call, World, lock.tail, lock.me + 1, lock.home) };
    if last != 0 {
        // SAFETY: as above; whoever was last waits for its next PE in its own node.
        unsafe { amo::or(call, World, lock.node, lock.me + 1, last as c_int - 1) };
        patience::until_seen(job, || lock.own_node() & WAITING == 0);
    }
}

/// `shmem_test_lock`: 0 if the lock was free and is taken now, 1 if it was not.
///
/// # Safety
/// As [`set`].
pub unsafe fn test(call: Call, lock: *mut c_long) -> c_int {
    let (lock, _) = Lock::new(call, lock);
    lock.reset_node(0);
    // SAFETY: half of a `long` is aligned.
    let last = unsafe { amo::compare_swap(call, World, lock.tail, 0, lock.me + 1, lock.home) };
    c_int::from(last != 0)
}

/// `shmem_clear_lock`: complete what was issued on the default context and hand the lock on.
///
/// # Safety
/// As [`set`]; this PE holds the lock.
pub unsafe fn clear(call: Call, lock: *mut c_long) {
    let (lock, job) = Lock::new(call, lock);
    order::quiet(lock.call, World);
    if lock.own_node() & !WAITING == 0 {
        // SAFETY: half of a `long` is aligned.
        let last = unsafe { amo::compare_swap(call, World, lock.tail, lock.me + 1, 0, lock.home) };
        if last == lock.me + 1 {
            return;
        }
        patience::until_seen(job, || lock.own_node() & !WAITING != 0);
    }
    let next = (lock.own_node() & !WAITING) as c_int - 1;
    // SAFETY: half of a `long` is aligned.
    unsafe { amo::and(call, World, lock.node, !WAITING, next) };
}
