//! Distributed locks (OpenSHMEM 1.6, §9.13): the queue of Mellor-Crummey and Scott, in one `long`.
//!
//! J. M. Mellor-Crummey, M. L. Scott: Algorithms for scalable synchronization on shared-memory
//! multiprocessors. ACM Transactions on Computer Systems 9 (1), 1991. A lock has a word of 8 bytes on
//! every PE. Its first half, on the lock's home PE, names the last PE of the queue; its second half is the
//! own node of the queue: whether this PE waits, and which PE is next. So PEs get the lock in the order
//! of their calls, each looks at its own word alone, and zero is a free lock.
//!
//! Threads of one PE share its node: `turns` settles whose it is. Who holds a lock twice, or clears one
//! that it does not hold, is told so instead of waiting for ever.

mod turns;

use crate::call::{Call, fail};
use crate::constants::SHMEM_THREAD_MULTIPLE;
use crate::ctx::World;
use crate::job::{self, Job};
use crate::{address, amo, check, order, patience};
use core::ffi::{c_int, c_long};
use rushmem_transport::Pe;
use rushmem_transport::mem::{Amo, Word};
use std::ops::Range;
use turns::Answer;

/// Set in a node while its PE waits; the other bits are the next PE plus one, or zero.
const WAITING: u32 = 1 << 31;

/// A lock as this PE has it.
struct Lock {
    call: Call,
    job: &'static Job,
    /// Last PE of the queue plus one, on `home`.
    tail: *mut u32,
    /// This PE's node.
    node: *mut u32,
    home: c_int,
    me: u32,
}

impl Lock {
    fn new(call: Call, lock: *mut c_long) -> Lock {
        let job = job::require(call);
        check::caller(call, job);
        let range = address::symmetric(call, "lock", lock.cast(), size_of::<c_long>());
        if !lock.is_aligned() {
            fail!(call, "argument lock: {lock:p} is not aligned as a long is");
        }
        let tail = lock.cast::<u32>();
        // Locks are spread over the PEs, so that many of them do not all burden the same one.
        let home = ((range.offset() / size_of::<c_long>()) % job.n_pes as usize) as c_int;
        Lock { call, job, tail, node: tail.wrapping_add(1), home, me: job.me().0 }
    }

    fn address(&self) -> usize {
        self.tail.addr()
    }

    /// Ask for this PE's node, before other threads of the PE that ask later.
    fn take_turn(&self, wait: bool) -> Answer {
        let threads = self.job.thread_level >= SHMEM_THREAD_MULTIPLE;
        turns::take(self.address(), threads, wait)
    }

    fn own_node(&self) -> u32 {
        // SAFETY: the lock was checked to be symmetric and aligned; a `long` holds two aligned words.
        unsafe { u32::load_acquire(self.node) }
    }

    fn reset_node(&self, value: u32) {
        // SAFETY: as above.
        unsafe { u32::set(self.node, value) }
    }

    /// The PE that is next, once it is known.
    fn next(&self) -> Option<Pe> {
        (self.own_node() & !WAITING).checked_sub(1).map(Pe)
    }

    /// Make this PE the last of the queue; who was it before.
    fn enqueue(&self) -> Option<Pe> {
        // SAFETY: half of a `long` is aligned.
        let last = unsafe { amo::swap(self.call, World, self.tail, self.me + 1, self.home) };
        last.checked_sub(1).map(Pe)
    }

    /// Change the last of the queue from one to the other, PEs plus one; whether it was the first.
    fn replace_last(&self, from: u32, to: u32) -> bool {
        // SAFETY: half of a `long` is aligned.
        unsafe { amo::compare_swap(self.call, World, self.tail, from, to, self.home) == from }
    }

    /// Tell a PE that waits, or holds the lock, that this one is next.
    fn follow(&self, pe: Pe) {
        // SAFETY: half of a `long` is aligned.
        unsafe { amo::or(self.call, World, self.node, self.me + 1, pe.0 as c_int) };
        self.job.internal().ring(pe);
    }

    /// Hand the lock on.
    fn hand_to(&self, pe: Pe) {
        // SAFETY: half of a `long` is aligned.
        unsafe { amo::and(self.call, World, self.node, !WAITING, pe.0 as c_int) };
        self.job.internal().ring(pe);
    }
}

/// `shmem_set_lock`: wait for the lock and take it, in the order of the calls.
///
/// # Safety
/// `lock` was zero on all PEs before its first use.
pub unsafe fn set(call: Call, lock: *mut c_long) {
    let lock = Lock::new(call, lock);
    if lock.take_turn(true) != Answer::Yours {
        fail!(
            call,
            "argument lock: this PE holds the lock already and would wait for itself; call \
             shmem_clear_lock before it is set again"
        );
    }
    lock.reset_node(WAITING);
    if let Some(last) = lock.enqueue() {
        turns::hold(lock.address(), false);
        lock.follow(last);
        patience::until_rung(lock.job, || lock.own_node() & WAITING == 0);
        turns::hold(lock.address(), true);
    }
}

/// `shmem_test_lock`: 0 if the lock was free and is taken now, 1 if it was not.
///
/// # Safety
/// As [`set`].
pub unsafe fn test(call: Call, lock: *mut c_long) -> c_int {
    let lock = Lock::new(call, lock);
    if lock.take_turn(false) != Answer::Yours {
        return 1;
    }
    lock.reset_node(0);
    if lock.replace_last(0, lock.me + 1) {
        return 0;
    }
    turns::pass(lock.address());
    1
}

/// `shmem_clear_lock`: complete what was issued on the default context and hand the lock on.
///
/// # Safety
/// As [`set`].
pub unsafe fn clear(call: Call, lock: *mut c_long) {
    let lock = Lock::new(call, lock);
    if !turns::hold(lock.address(), false) {
        fail!(
            call,
            "argument lock: this PE does not hold the lock; clear it where shmem_set_lock or \
             shmem_test_lock took it, and once"
        );
    }
    order::quiet(call, World);
    if lock.next().is_some() || !lock.replace_last(lock.me + 1, 0) {
        patience::until_rung(lock.job, || lock.next().is_some());
        lock.hand_to(lock.next().expect("it was just waited for"));
    }
    turns::pass(lock.address());
}

/// The library is about to be finalized. Nobody will clear what this PE holds: a message when another PE
/// waits for it, a warning when one might.
pub(crate) fn finalize(call: Call) {
    for address in turns::held() {
        let lock = Lock::new(call, std::ptr::with_exposed_provenance_mut(address));
        let held = format!("this PE still holds the lock at {address:#x}");
        let cure = "call shmem_clear_lock first";
        match lock.next() {
            None => eprintln!("warning: PE {}: {call}: {held}; {cure}", lock.job.me()),
            Some(next) => fail!(call, "{held}, for which PE {next} waits; {cure}"),
        }
    }
    forget(0..usize::MAX);
}

/// Forget the locks in memory that is freed, or all of them.
pub(crate) fn forget(block: Range<usize>) {
    turns::forget(block);
}
