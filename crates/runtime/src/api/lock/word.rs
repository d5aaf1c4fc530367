//! The two types of a lock: C's `long`, whose halves are the fields, and Fortran's default INTEGER,
//! whose halves have room for the PEs of a job of up to 32,767.
//!
//! A field has the number of a PE plus one; zero stands for no PE. One field is the tail of the
//! queue, the other one the node, which also has the bit [`LockWord::GRANTED`].
#![allow(unsafe_code)]

use crate::api::amo;
use core::ffi::{c_int, c_long};
use rushmem_communication::access::contexts::Context;
use rushmem_pe::call::Call;
use rushmem_pe::job::handle::ContextHandle;
use rushmem_transport::mem::WaitWord;

/// The default context, for the operations of a lock on its own words.
#[derive(Clone, Copy)]
struct LockContext;

impl Context for LockContext {
    const IS_OF_LOCK: bool = true;

    #[inline(always)]
    fn world_pe(self, _: Call, pe: c_int) -> c_int {
        pe
    }

    #[inline(always)]
    fn handle(self) -> ContextHandle {
        ContextHandle::DEFAULT
    }

    #[inline(always)]
    fn is_valid(self, _: Call) -> bool {
        true
    }
}

/// The word of a lock on one PE.
#[derive(Clone, Copy)]
pub struct RemoteWord<T> {
    pub(crate) call: Call,
    pub(crate) word: *mut T,
    pub(crate) pe: c_int,
}

/// A type of a lock: the positions of its fields, and the operations on them.
///
/// # Safety
/// All functions require that the word is symmetric and aligned.
#[expect(clippy::missing_safety_doc, reason = "one contract for all")]
pub trait LockWord: Sized + 'static {
    /// The maximum number of PEs in a job.
    const MAX_PES: u32;
    /// The bit of a node that the PE before this one sets when it grants the lock. The other bits
    /// name the next PE.
    const GRANTED: u32;

    /// Loads this PE's node with acquire order.
    unsafe fn node(word: *const Self) -> u32;
    /// Sets the node of this PE, which is in no queue, to zero before the call returns.
    unsafe fn clear_node(own: RemoteWord<Self>);
    /// Sets bits of a node. They may be set as late as at the next quiet of this PE.
    unsafe fn add_to_node(remote: RemoteWord<Self>, bits: u32);
    /// Makes `last` the last PE of the queue. Returns the former one.
    unsafe fn swap_tail(home: RemoteWord<Self>, last: u32) -> u32;
    /// Makes `last` the last PE of the queue if that is `cond`. Returns the former one.
    unsafe fn compare_swap_tail(home: RemoteWord<Self>, cond: u32, last: u32) -> u32;
}

impl RemoteWord<c_long> {
    fn tail(self) -> *mut u32 {
        self.word.cast()
    }

    fn node(self) -> *mut u32 {
        self.tail().wrapping_add(1)
    }
}

impl LockWord for c_long {
    const MAX_PES: u32 = i32::MAX as u32;
    const GRANTED: u32 = 1 << 31;

    unsafe fn node(word: *const Self) -> u32 {
        // SAFETY: by contract, `word` is an aligned `long` of this PE; this is its second half.
        unsafe { u32::load_acquire(word.cast::<u32>().wrapping_add(1)) }
    }

    unsafe fn clear_node(own: RemoteWord<Self>) {
        // SAFETY: half of a symmetric, aligned `long` is symmetric and aligned.
        unsafe { amo::swap(own.call, LockContext, own.node(), 0, own.pe) };
    }

    unsafe fn add_to_node(remote: RemoteWord<Self>, bits: u32) {
        // SAFETY: half of a symmetric, aligned `long` is symmetric and aligned.
        unsafe { amo::or(remote.call, LockContext, remote.node(), bits, remote.pe) };
    }

    unsafe fn swap_tail(home: RemoteWord<Self>, last: u32) -> u32 {
        // SAFETY: half of a symmetric, aligned `long` is symmetric and aligned.
        unsafe { amo::swap(home.call, LockContext, home.tail(), last, home.pe) }
    }

    unsafe fn compare_swap_tail(home: RemoteWord<Self>, cond: u32, last: u32) -> u32 {
        // SAFETY: half of a symmetric, aligned `long` is symmetric and aligned.
        unsafe { amo::compare_swap(home.call, LockContext, home.tail(), cond, last, home.pe) }
    }
}

/// The position of the lowest bit of the tail in an INTEGER.
const TAIL: u32 = 16;
/// The bits of the node, which are those below the tail.
const NODE: u32 = (1 << TAIL) - 1;

impl LockWord for c_int {
    const MAX_PES: u32 = Self::GRANTED - 1;
    const GRANTED: u32 = 1 << 15;

    unsafe fn node(word: *const Self) -> u32 {
        // SAFETY: by contract, `word` is an aligned word of this PE.
        let word = unsafe { u32::load_acquire(word.cast()) };
        word & NODE
    }

    // On the home PE, other PEs may change the tail in the same word at the same time, so the node
    // alone is cleared.
    unsafe fn clear_node(own: RemoteWord<Self>) {
        // SAFETY: the caller promises that the word is symmetric and aligned.
        unsafe { amo::fetch_and(own.call, LockContext, own.word.cast(), !NODE, own.pe) };
    }

    unsafe fn add_to_node(remote: RemoteWord<Self>, bits: u32) {
        // SAFETY: the caller promises that the word is symmetric and aligned.
        unsafe {
            amo::or(
                remote.call,
                LockContext,
                remote.word.cast(),
                bits,
                remote.pe,
            )
        };
    }

    unsafe fn swap_tail(home: RemoteWord<Self>, last: u32) -> u32 {
        // SAFETY: the caller promises that the word is symmetric and aligned.
        unsafe { change_tail(home, |_| Some(last)) }
    }

    unsafe fn compare_swap_tail(home: RemoteWord<Self>, cond: u32, last: u32) -> u32 {
        // SAFETY: the caller promises that the word is symmetric and aligned.
        unsafe { change_tail(home, |tail| (tail == cond).then_some(last)) }
    }
}

/// Replaces the tail by the result of `next` for it, unless that is `None`, and leaves the node
/// unchanged: a loop of compare-and-swap. Returns the former tail.
///
/// # Safety
/// As [`LockWord`].
unsafe fn change_tail(home: RemoteWord<c_int>, next: impl Fn(u32) -> Option<u32>) -> u32 {
    let word = home.word.cast::<u32>();
    // SAFETY: the caller promises that the word is symmetric and aligned.
    let mut seen = unsafe { amo::fetch(home.call, LockContext, word, home.pe) };
    while let Some(tail) = next(seen >> TAIL) {
        let changed = tail << TAIL | seen & NODE;
        // SAFETY: the caller promises that the word is symmetric and aligned.
        let found =
            unsafe { amo::compare_swap(home.call, LockContext, word, seen, changed, home.pe) };
        if found == seen {
            break;
        }

        // Another PE has changed the tail or the node in between.
        seen = found;
    }
    seen >> TAIL
}
