//! From a symmetric address and a PE to a pointer.
//!
//! This is the whole of what an on-node access does before it touches memory: two compares for the
//! segment, one for the PE, a load from the table of deltas, an addition. Whatever does not pass goes to
//! cold code, which finds another way or says why there is none.

use crate::call::{Call, fail};
use crate::job;
use crate::network;
use crate::range::Range;
use core::ffi::c_int;
use rushmem_transport::{RemoteAddr, Segment};
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

/// PE `pe`'s copy of the `nbytes` symmetric bytes at `address`, as a pointer into memory mapped here;
/// `None` leaves it to [`remote`] to find another way or to say why there is none.
#[inline(always)]
pub(crate) fn mapped<T>(address: *const T, nbytes: usize, pe: c_int) -> Option<*mut T> {
    if in_heap(address.addr(), nbytes)
        && let Some(delta) = delta(pe)
    {
        return Some(address.wrapping_byte_offset(delta).cast_mut());
    }
    None
}

/// As [`mapped`] for one word, which must be aligned to its size. The offset of a misaligned word, rotated
/// so that its low bits lead, is beyond any heap: alignment and bounds are one compare.
#[inline(always)]
pub(crate) fn mapped_word<T>(address: *const T, pe: c_int) -> Option<*mut T> {
    let bits = size_of::<T>().trailing_zeros();
    let offset = address.addr().wrapping_sub(MAP.heap.load(Relaxed));
    if offset.rotate_right(bits) < MAP.heap_bytes.load(Relaxed) >> bits
        && let Some(delta) = delta(pe)
    {
        return Some(address.wrapping_byte_offset(delta).cast_mut());
    }
    if is_aligned(address) { mapped(address, size_of::<T>(), pe) } else { None }
}

/// Whether a word is aligned to its size, which may be more than its type asks for.
#[inline(always)]
pub(crate) fn is_aligned<T>(address: *const T) -> bool {
    address.addr().is_multiple_of(size_of::<T>())
}

/// A message unless the word of `nbytes` bytes at `addr` is aligned to its size.
pub(crate) fn require_aligned(call: Call, argument: &'static str, addr: usize, nbytes: usize) {
    if !addr.is_multiple_of(nbytes) {
        fail!(
            call,
            "argument {argument}: {addr:#x} is not aligned to the {nbytes} bytes of its type"
        );
    }
}

/// The same bytes as segment and offset, for a transport; a message when they are not symmetric or
/// there is no such PE. `argument` is the name that the address has in the call.
#[cold]
pub(crate) fn remote(
    call: Call,
    argument: &'static str,
    addr: usize,
    nbytes: usize,
    pe: c_int,
) -> RemoteAddr {
    let is_pe = pe >= 0 && (pe as usize) < MAP.n_pes.load(Relaxed);
    if !is_pe || !in_heap(addr, nbytes) || !network::is_open() {
        refuse(call, argument, addr, nbytes, pe)
    }
    let offset = (addr - MAP.heap.load(Relaxed)) as u64;
    RemoteAddr { segment: Segment::Heap, offset }
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
    unsafe {
        let offset = address.addr() - MAP.heap.load(Relaxed);
        Range::new(Segment::Heap, offset, address.cast_mut(), nbytes)
    }
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
