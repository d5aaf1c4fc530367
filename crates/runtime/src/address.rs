//! From a symmetric address and a PE to a pointer.
//!
//! This is the whole of what an on-node access does before it touches memory: two compares for the
//! segment, one for the PE, a load from the table of deltas, an addition. Whatever does not pass ends
//! in cold code that finds out why and says so.

use crate::call::{Call, fail};
use crate::job;
use crate::range::Range;
use core::ffi::c_int;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering::Relaxed};

/// What the path of every access reads: one cache line, written by init and finalize alone.
/// Relaxed loads compile to plain ones; the standard asks that no call overlaps init or finalize.
#[repr(align(64))]
struct Map {
    /// Start of the own heap.
    heap: AtomicUsize,
    /// Its bytes; 0 while the library is not initialised, so that every access takes the cold path.
    heap_bytes: AtomicUsize,
    /// PEs in `deltas`.
    n_pes: AtomicUsize,
    /// For each PE what to add to an own address, or `UNMAPPED`.
    deltas: AtomicPtr<isize>,
}

/// The delta of a PE whose memory is not mapped here. Real ones are multiples of the page size.
const UNMAPPED: isize = 1;

static MAP: Map = Map {
    heap: AtomicUsize::new(0),
    heap_bytes: AtomicUsize::new(0),
    n_pes: AtomicUsize::new(0),
    deltas: AtomicPtr::new(std::ptr::null_mut()),
};

/// Open the fast path. `deltas` has one entry per PE, `None` where a PE's memory is not mapped here.
pub(crate) fn publish(heap: *mut u8, heap_bytes: usize, deltas: &[Option<isize>]) {
    let table: Vec<isize> = deltas.iter().map(|d| d.unwrap_or(UNMAPPED)).collect();
    // Kept for the life of the process: a thread that overlaps finalize reads memory, not nothing.
    let table = Box::leak(table.into_boxed_slice());
    MAP.deltas.store(table.as_mut_ptr(), Relaxed);
    MAP.n_pes.store(table.len(), Relaxed);
    reopen(heap, heap_bytes);
}

/// Open the fast path again after [`close`], with the same PEs.
pub(crate) fn reopen(heap: *mut u8, heap_bytes: usize) {
    MAP.heap.store(heap.addr(), Relaxed);
    MAP.heap_bytes.store(heap_bytes, Relaxed);
}

/// Close the fast path: every access ends in a message from now on.
pub(crate) fn close() {
    MAP.heap_bytes.store(0, Relaxed);
}

/// Whether `nbytes` bytes at `addr` lie in the own heap.
#[inline(always)]
pub(crate) fn in_heap(addr: usize, nbytes: usize) -> bool {
    let heap_bytes = MAP.heap_bytes.load(Relaxed);
    let offset = addr.wrapping_sub(MAP.heap.load(Relaxed));
    offset < heap_bytes && nbytes <= heap_bytes - offset
}

/// The delta of a PE whose memory is mapped here.
#[inline(always)]
pub(crate) fn delta(pe: c_int) -> Option<isize> {
    if pe as u32 as usize >= MAP.n_pes.load(Relaxed) {
        return None;
    }
    // SAFETY: the table has `n_pes` entries and is never freed.
    let delta = unsafe { MAP.deltas.load(Relaxed).wrapping_add(pe as u32 as usize).read() };
    (delta != UNMAPPED).then_some(delta)
}

/// PE `pe`'s copy of the `nbytes` symmetric bytes at `address`, as a pointer into memory mapped here.
/// `argument` is the name that `address` has in the call.
#[inline(always)]
pub(crate) fn translate<T>(
    call: Call,
    argument: &'static str,
    address: *const T,
    nbytes: usize,
    pe: c_int,
) -> *mut T {
    if in_heap(address.addr(), nbytes)
        && let Some(delta) = delta(pe)
    {
        return address.wrapping_byte_offset(delta).cast_mut();
    }
    refuse(call, argument, address.addr(), nbytes, pe)
}

/// The own copy of the symmetric bytes that a collective works on.
pub(crate) fn symmetric(
    call: Call,
    argument: &'static str,
    address: *const u8,
    nbytes: usize,
) -> Range {
    if nbytes == 0 {
        return Range::EMPTY;
    }
    if !in_heap(address.addr(), nbytes) {
        refuse(call, argument, address.addr(), nbytes, 0)
    }
    // SAFETY: in the heap, as just checked.
    unsafe { Range::new(address.cast_mut(), nbytes) }
}

/// Say why an access cannot be.
#[cold]
#[inline(never)]
fn refuse(call: Call, argument: &'static str, addr: usize, nbytes: usize, pe: c_int) -> ! {
    job::require(call);
    let n_pes = MAP.n_pes.load(Relaxed);
    if pe < 0 || pe as usize >= n_pes {
        fail!(call, "argument pe is {pe}, but PEs are numbered 0 to {}", n_pes - 1);
    }
    let heap = MAP.heap.load(Relaxed);
    let heap_bytes = MAP.heap_bytes.load(Relaxed);
    if addr.wrapping_sub(heap) < heap_bytes {
        fail!(
            call,
            "argument {argument}: {nbytes} bytes at {addr:#x} reach beyond the symmetric heap \
             ({heap_bytes} bytes at {heap:#x})"
        );
    }
    fail!(
        call,
        "argument {argument}: {addr:#x} is not in the symmetric heap ({heap_bytes} bytes at \
         {heap:#x}); allocate it with shmem_malloc (static variables are not symmetric yet)"
    );
}
