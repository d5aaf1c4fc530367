//! The symmetric heap (OpenSHMEM 1.6, §9.3).
//!
//! Every PE has an allocator of its own. All PEs make the same calls, so the allocators return the
//! same offsets. A call that frees a block begins with a barrier, one that allocates ends with one,
//! and `realloc` does both, as the standard requires. A call with nothing to do (0 bytes to
//! allocate, a null pointer to free) makes none, nor does an allocation with
//! `SHMEMX_MALLOC_NO_BARRIER`.
#![allow(unsafe_code)]

pub(crate) mod release;

pub use release::{reclaim, release};

use crate::coll::collectives::heap_barrier;
use crate::coll::heap_change::HeapChange;
use crate::coll::same_collective::CheckedArgument;
use crate::own_pe::{self, OwnPe};
use core::ffi::{c_long, c_void};
use rushmem_communication::links::Links;
use rushmem_communication::observers::{self, Action, Event};
use rushmem_heap::{AddressKind, Allocator, Misplaced, Unusable};
use rushmem_pe::call::{Call, fail};
use rushmem_pe::constants::SHMEM_MALLOC_ATOMICS_REMOTE;
use rushmem_pe::extension_constants::SHMEMX_MALLOC_NO_BARRIER;
use rushmem_pe::job::{self, Job, mpi};
use rushmem_pe::memory::{address, checks, huge_pages, locked, shortage};
use rushmem_transport::Segment;
use std::cell::Cell;
use std::ptr::null_mut;

/// The default alignment of a block: that of the largest C type.
const ALIGNMENT: usize = 16;

/// `shmem_malloc` (§9.3.1): allocates a block of `nbytes` bytes. Returns null without a barrier for
/// 0 bytes, and null on all PEs if there is no room.
pub fn malloc(call: Call, nbytes: usize) -> *mut c_void {
    align(call, ALIGNMENT, nbytes)
}

/// `shmem_malloc_with_hints` (§9.3.5). Every block suits every use, but by default blocks with
/// `SHMEM_MALLOC_ATOMICS_REMOTE` get huge pages from 2 MiB on, other blocks from 64 MiB on. With
/// `SHMEMX_MALLOC_NO_BARRIER` the program must ensure that no PE accesses the block on a PE that
/// has not called yet.
pub fn malloc_with_hints(call: Call, nbytes: usize, hints: c_long) -> *mut c_void {
    allocate(call, ALIGNMENT, nbytes, hints)
}

/// `shmem_align` (§9.3.4): a [`malloc`] of an aligned block. Every alignment below 16 counts as 16,
/// also one below the size of a pointer, which the standard leaves undefined and old programs use.
/// One that is not a power of two returns null without a barrier; with `SHMEM_CHECK` it ends the
/// job with an error.
pub fn align(call: Call, alignment: usize, nbytes: usize) -> *mut c_void {
    allocate(call, alignment, nbytes, 0)
}

fn allocate(call: Call, alignment: usize, nbytes: usize, hints: c_long) -> *mut c_void {
    let pe = own_pe::require(call);
    let job = pe.job();
    if !alignment.is_power_of_two() && job.settings.checks() {
        fail!(
            call,
            "argument alignment is {alignment}, which is not a power of two"
        );
    }
    if nbytes == 0 || !alignment.is_power_of_two() {
        return null_mut();
    }

    mpi::warn_if_awaited(job);
    let has_barrier = hints & SHMEMX_MALLOC_NO_BARRIER == 0;
    let request = AllocationRequest {
        nbytes,
        alignment,
        for_amos: hints & SHMEM_MALLOC_ATOMICS_REMOTE != 0,
        reclaims: has_barrier,
    };
    let block = allocate_block(call, pe, request);

    if has_barrier {
        let arguments = [("size", nbytes as u64), ("alignment", alignment as u64)];
        heap_barrier(call, HeapChange::Allocate(nbytes as u64), &arguments);
    }
    or_null(block)
}

fn or_null(block: Option<*mut u8>) -> *mut c_void {
    match block {
        Some(block) => block.cast(),
        None => null_mut(),
    }
}

/// `shmem_calloc` (§9.3.6): allocates `count` elements of `nbytes` zero bytes; returns null without
/// a barrier if either is 0.
pub fn calloc(call: Call, count: usize, nbytes: usize) -> *mut c_void {
    // If the product overflows, no heap has room for it.
    let all = count.saturating_mul(nbytes);
    let arguments = [("count", count as u64), ("size", nbytes as u64)];
    let request = AllocationRequest {
        nbytes: all,
        alignment: ALIGNMENT,
        for_amos: false,
        reclaims: true,
    };
    zeroed_as(call, request, &arguments)
}

/// Allocates `nbytes` zero bytes, aligned to a power of two; returns null without a barrier for 0
/// bytes. Does not reclaim: the caller has done so, or need not.
pub fn zeroed(call: Call, alignment: usize, nbytes: usize) -> *mut c_void {
    let request = AllocationRequest {
        nbytes,
        alignment,
        for_amos: false,
        reclaims: false,
    };
    zeroed_as(call, request, &[("bytes", nbytes as u64)])
}

/// Allocates zero bytes for a call with these `arguments`, in which all PEs must agree: with
/// `SHMEM_CHECK`, ends the job with an error if they do not.
fn zeroed_as(call: Call, request: AllocationRequest, arguments: &[CheckedArgument]) -> *mut c_void {
    let pe = own_pe::require(call);
    let nbytes = request.nbytes;
    if nbytes == 0 {
        return null_mut();
    }

    let block = allocate_block(call, pe, request);
    if let Some(block) = block {
        // SAFETY: the block has `nbytes` bytes, and no PE uses it before the barrier.
        unsafe { block.write_bytes(0, nbytes) };
    }

    heap_barrier(call, HeapChange::Allocate(nbytes as u64), arguments);
    or_null(block)
}

/// `shmem_realloc` (§9.3.3): works as `malloc` for a null pointer, and as `free` for 0 bytes, for
/// which it returns null. Returns null and leaves the block unchanged if there is no room.
///
/// # Safety
/// No PE uses the block at its old address any more.
pub unsafe fn realloc(call: Call, ptr: *mut c_void, nbytes: usize) -> *mut c_void {
    let pe = own_pe::require(call);
    let links = pe.links;
    let job = pe.job();
    if ptr.is_null() {
        return malloc(call, nbytes);
    }
    if nbytes == 0 {
        // SAFETY: the caller promises that no PE uses the block any more.
        unsafe { free(call, ptr) };
        return null_mut();
    }

    let offset = checked_offset(pe, call, ptr);
    let change = HeapChange::Reallocate(nbytes as u64);
    let arguments = [("size", nbytes as u64), ("ptr at", offset)];
    heap_barrier(call, change, &arguments);
    require_intact(call, links, ptr);

    let old = with_allocator(job, |allocator| allocator.block_around(ptr.addr()));
    let reallocate = || {
        let reallocated = allocating(call, job, |allocator| {
            allocator.reallocate(call.name(), ptr.cast(), nbytes)
        });
        checks::forget_blocks();
        reallocated.unwrap_or_else(|why| fail_unusable(call, job, ptr, why))
    };
    let new = reallocate().or_else(|| {
        release::make_room(pe, call, nbytes);
        reallocate()
    });

    match new {
        Some(block) => {
            if let Some(old) = old {
                report_block(call, ptr, old.len(), false);
                // The locks in a block that has not moved keep their state.
                if ptr != block.cast() {
                    links.lock_turns.forget(ptr.addr()..ptr.addr() + old.len());
                }
            }
            prepare_block(call, links, block, nbytes, false);
            report_block(call, block, nbytes, true);
        }
        None => record_refusal(call, job, nbytes, ALIGNMENT),
    }

    heap_barrier(call, change, &arguments);
    or_null(new)
}

/// `shmem_free` (§9.3.2): returns without a barrier for a null pointer.
///
/// # Safety
/// No PE uses the block any more.
pub unsafe fn free(call: Call, ptr: *mut c_void) {
    let pe = own_pe::require(call);
    if ptr.is_null() {
        return;
    }

    let offset = checked_offset(pe, call, ptr);
    heap_barrier(call, HeapChange::Free(offset), &[("ptr at", offset)]);
    free_block(call, pe.links, ptr);
}

/// Frees a block that no PE uses any more. Returns its size in bytes.
pub(super) fn free_block(call: Call, links: &Links, ptr: *mut c_void) -> usize {
    let job = &links.job;
    require_intact(call, links, ptr);

    let freed = allocating(call, job, |allocator| {
        allocator.free(call.name(), ptr.cast())
    });
    checks::forget_blocks();
    let nbytes = freed.unwrap_or_else(|why| fail_unusable(call, job, ptr, why));

    report_block(call, ptr, nbytes, false);
    links.lock_turns.forget(ptr.addr()..ptr.addr() + nbytes);
    nbytes
}

/// The symmetric heap of this PE, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeapInfo {
    /// The size of the heap: `SHMEM_SYMMETRIC_SIZE` and the bytes that the allocator needs in
    /// addition, in whole pages.
    pub total: usize,
    /// The sum of the sizes of all blocks, as they were requested, also of those that were released
    /// and not yet reclaimed.
    pub used: usize,
    /// The size of a block for which there is room now. One that is up to 32 bytes larger may have
    /// room, too.
    pub largest_free: usize,
}

/// `shmemx_heap_info`: returns the use of the heap of this PE.
pub fn info(call: Call) -> HeapInfo {
    let job = job::require(call);
    let total = job.memory.layout().heap_bytes();
    with_allocator(job, |allocator| HeapInfo {
        total,
        used: allocator.in_use(),
        largest_free: allocator.largest_free(),
    })
}

/// What an allocation asks for.
#[derive(Clone, Copy)]
pub(super) struct AllocationRequest {
    pub(super) nbytes: usize,
    pub(super) alignment: usize,
    /// True if the block is for remote atomic operations.
    pub(super) for_amos: bool,
    /// True if blocks that all PEs have released are freed where there is no room. PEs then wait
    /// for each other.
    pub(super) reclaims: bool,
}

/// Allocates a block of the heap, if there is room.
pub(super) fn allocate_block(
    call: Call,
    pe: &'static OwnPe,
    request: AllocationRequest,
) -> Option<*mut u8> {
    let job = pe.job();
    let AllocationRequest {
        nbytes,
        alignment,
        for_amos,
        reclaims,
    } = request;
    let allocate = || {
        allocating(call, job, |allocator| {
            allocator.allocate(call.name(), nbytes, alignment)
        })
    };
    let mut block = allocate();
    if block.is_none() && reclaims {
        release::make_room(pe, call, nbytes);
        block = allocate();
    }

    match block {
        Some(block) => {
            prepare_block(call, pe.links, block, nbytes, for_amos);
            report_block(call, block, nbytes, true);
        }
        None => record_refusal(call, job, nbytes, alignment),
    }
    block
}

/// Shows observers that a block was allocated or freed.
fn report_block<T>(call: Call, block: *const T, nbytes: usize, is_allocated: bool) {
    observers::report(|| {
        Event::new(call, Action::Block { is_allocated }).with_bytes(block, nbytes)
    });
}

/// Makes huge pages for a block that was just allocated, makes the block reachable by all PEs, and
/// warns if the node may lack the memory for it. The program does not have the block yet.
fn prepare_block(call: Call, links: &Links, block: *mut u8, nbytes: usize, for_amos: bool) {
    let job = &links.job;
    let end = block.addr() + nbytes - job.memory.heap().addr();
    shortage::warn_of_shortage(end, job.memory.n_local());

    // Before the network registers the block, since some networks lock its pages then.
    huge_pages::make_for_block(job, block, nbytes, for_amos);
    links.network.extend_heap(call, end, |reach, is_locked| {
        if is_locked {
            locked::prepare(job, reach)
        } else {
            Ok(())
        }
    });
}

/// Records an allocation for which there was no room.
#[cold]
fn record_refusal(call: Call, job: &Job, nbytes: usize, alignment: usize) {
    shortage::record_refusal(call, job, nbytes, alignment, || {
        with_allocator(job, |allocator| allocator.in_use())
    });
}

/// Returns the offset in bytes of a block from the start of the heap, which is the same on all PEs.
pub fn offset(call: Call, ptr: *const c_void) -> u64 {
    let heap = job::require(call).memory.heap().addr();
    ptr.addr().wrapping_sub(heap) as u64
}

/// Returns the offset of a block, which must be the same on all PEs. Ends the job with an error if
/// the address is not in the heap, or if the block is a registered buffer's, or one that this PE
/// has released.
fn checked_offset(pe: &OwnPe, call: Call, ptr: *const c_void) -> u64 {
    let job = pe.job();
    if !is_in_heap(job, ptr) {
        fail_not_a_block(call, job, ptr);
    }
    require_no_buffer(pe, call, ptr);
    let unreleased = with_allocator(job, |allocator| allocator.require_unreleased(ptr.cast()));
    unreleased.unwrap_or_else(|why| fail_unusable(call, job, ptr, why));
    offset(call, ptr)
}

/// Ends the job with an error if the address is in the block of a registered buffer.
fn require_no_buffer(pe: &OwnPe, call: Call, ptr: *const c_void) {
    let block = with_allocator(pe.job(), |allocator| allocator.block_around(ptr.addr()));
    if let Some(block) = block
        && pe.buffers.have_block(block.start)
    {
        fail!(
            call,
            "argument ptr: {ptr:p} is in the block of a registered buffer; end its registration by \
             shmemx_buffer_unregister, to which the program's own address is passed"
        );
    }
}

fn is_in_heap(job: &Job, ptr: *const c_void) -> bool {
    let heap = job.memory.heap().addr();
    ptr.addr().wrapping_sub(heap) < job.memory.layout().heap_bytes()
}

/// With `SHMEM_CHECK`, ends the job with an error if the guard of a block was overwritten, or if
/// this PE holds a lock in the block.
fn require_intact(call: Call, links: &Links, ptr: *const c_void) {
    let job = &links.job;
    if !job.settings.checks() {
        return;
    }
    checks::require_guard(call, job, ptr.cast());

    let block = with_allocator(job, |allocator| allocator.block_around(ptr.addr()));
    let end = ptr.addr() + block.map_or(0, |block| block.len());
    if let Some(lock) = links.lock_turns.held_in(ptr.addr()..end) {
        fail!(
            call,
            "{}this PE holds the lock at {lock:#x}, which is in the block at {ptr:p}; {}",
            call.words("argument ptr: ", "an object was dropped: "),
            call.words(
                "call shmem_clear_lock before the block is freed or reallocated",
                "drop the lock's guard before the object"
            )
        );
    }
}

/// The reason why an address cannot be freed or reallocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotABlock {
    /// The address is not in the symmetric heap.
    Outside,
    /// There is no block at the address: it was freed, or never allocated.
    Free,
    /// The address is inside a block, not at its start.
    Inside,
}

/// Checks that `ptr` is the start of a block, which [`free`] and [`realloc`] accept.
///
/// # Errors
/// If it is not.
pub fn check_block(call: Call, ptr: *const c_void) -> Result<(), NotABlock> {
    let job = job::require(call);
    if !is_in_heap(job, ptr) {
        return Err(NotABlock::Outside);
    }
    match with_allocator(job, |allocator| allocator.kind(ptr.cast())) {
        AddressKind::Block => Ok(()),
        AddressKind::Free => Err(NotABlock::Free),
        AddressKind::Inside(_) => Err(NotABlock::Inside),
    }
}

fn with_allocator<R>(job: &Job, act: impl FnOnce(&mut Allocator) -> R) -> R {
    let mut allocator = job.allocator();
    act(allocator
        .as_mut()
        .expect("there is an allocator between init and finalize"))
}

thread_local! {
    /// The call in which this thread changes the data of the allocator.
    static ALLOCATING: Cell<Option<Call>> = const { Cell::new(None) };
}

/// Calls `act`, which allocates or frees, with the allocator. The allocator follows its data in the
/// heap, so it may crash if a store beyond the end of a block has changed them. The message of the
/// crash then names the call.
fn allocating<R>(call: Call, job: &Job, act: impl FnOnce(&mut Allocator) -> R) -> R {
    ALLOCATING.set(Some(call));
    let result = with_allocator(job, act);
    ALLOCATING.set(None);
    result
}

/// Returns the call in which this thread allocates or frees now; `None` if it is in no such call.
/// May be called in the handler of a signal.
pub(crate) fn allocating_call() -> Option<Call> {
    ALLOCATING.get()
}

/// The remedy for a heap that a store has damaged.
pub(crate) const DAMAGED: &str = "a store before this went beyond the end of a block; run the \
    program with SHMEM_CHECK=1, which names the block";

fn fail_unusable(call: Call, job: &Job, ptr: *const c_void, why: Unusable) -> ! {
    match why {
        Unusable::NotABlockStart => fail_not_a_block(call, job, ptr),
        Unusable::Released(block, by) => fail!(
            call,
            "argument ptr: {by} has released {block} already; shmemx_reclaim frees it"
        ),
        Unusable::Damaged(block) => fail!(
            call,
            "the symmetric heap is damaged beside {block}: {DAMAGED}"
        ),
    }
}

fn fail_not_a_block(call: Call, job: &Job, ptr: *const c_void) -> ! {
    if let Some(checks::OwnedByOther { owner, own }) = checks::owner_of(job, ptr.addr()) {
        fail!(
            call,
            "argument ptr: {ptr:p} is memory of PE {owner}; pass the address of the block on this PE ({own:#x}) \
             instead of what shmem_ptr returns"
        );
    }
    if !is_in_heap(job, ptr) {
        let what = match address::locate(ptr.addr(), 1) {
            Some((Segment::Static, _)) => "is static data of the program",
            Some((Segment::Heap, _)) => "is in a registered buffer of the program's own memory",
            _ => "is not in the symmetric heap",
        };
        fail!(
            call,
            "argument ptr: {ptr:p} {what}; only a block that was returned by shmem_malloc or a similar routine can \
             be freed or reallocated"
        );
    }

    let kind = with_allocator(job, |allocator| allocator.kind(ptr.cast()));
    if let AddressKind::Inside(block) = kind {
        fail!(
            call,
            "argument ptr: {ptr:p} is inside {block}, of which only the start can be freed or reallocated"
        );
    }

    let holding = with_allocator(job, |allocator| allocator.holding(ptr.addr(), 1));
    if let Err(Misplaced::Freed(block, by)) = holding {
        fail!(
            call,
            "argument ptr: {ptr:p} is not allocated: {by} has freed {block} already"
        );
    }

    fail!(
        call,
        "argument ptr: {ptr:p} is not an allocated block, or was freed already; SHMEM_CHECK=1 says which"
    )
}
