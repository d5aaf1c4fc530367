//! From a symmetric address and a PE to a pointer.
//!
//! This is the whole of what an on-node access does before it touches memory: two compares for each
//! segment it may be in, one for the PE, a load from the segment's table of deltas, an addition. Whatever does not pass goes to
//! cold code, which finds another way or says why there is none.

use crate::call::{Call, fail};
use crate::job;
use crate::network;
use crate::range::Range;
use crate::statics;
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
    /// For each PE what to add to an own address in the heap, or `UNMAPPED`.
    heap_deltas: AtomicPtr<isize>,
    /// PEs in each table of deltas.
    n_pes: AtomicUsize,
    /// The same for the static data. They may have holes, which nobody has mapped.
    statics: AtomicUsize,
    static_bytes: AtomicUsize,
    static_deltas: AtomicPtr<isize>,
}

/// The delta of a PE whose memory is not mapped here. Real ones are multiples of the page size.
const UNMAPPED: isize = 1;

static MAP: Map = Map {
    heap: AtomicUsize::new(0),
    heap_bytes: AtomicUsize::new(0),
    heap_deltas: AtomicPtr::new(std::ptr::null_mut()),
    n_pes: AtomicUsize::new(0),
    statics: AtomicUsize::new(0),
    static_bytes: AtomicUsize::new(0),
    static_deltas: AtomicPtr::new(std::ptr::null_mut()),
};

/// Which PEs are mapped here. The tables have one entry per PE, `None` where a PE's memory is not.
pub(crate) fn publish(heap_deltas: &[Option<isize>], static_deltas: &[Option<isize>]) {
    // Kept for the life of the process: a thread that overlaps finalize reads memory, not nothing.
    let table = |deltas: &[Option<isize>]| {
        let table: Vec<isize> = deltas.iter().map(|d| d.unwrap_or(UNMAPPED)).collect();
        Box::leak(table.into_boxed_slice()).as_mut_ptr()
    };
    MAP.heap_deltas.store(table(heap_deltas), Relaxed);
    MAP.static_deltas.store(table(static_deltas), Relaxed);
    MAP.n_pes.store(heap_deltas.len(), Relaxed);
}

/// Open the fast path, for the first time or again after [`close`], with the same PEs.
pub(crate) fn open(heap: *mut u8, heap_bytes: usize) {
    MAP.heap.store(heap.addr(), Relaxed);
    MAP.heap_bytes.store(heap_bytes, Relaxed);
    MAP.statics.store(statics::own().start(), Relaxed);
    MAP.static_bytes.store(statics::own().nbytes(), Relaxed);
}

/// Close the fast path: every access ends in a message from now on.
pub(crate) fn close() {
    MAP.heap_bytes.store(0, Relaxed);
    MAP.static_bytes.store(0, Relaxed);
}

/// Whether `nbytes` bytes at `addr` lie in a segment.
#[inline(always)]
fn within(addr: usize, nbytes: usize, start: &AtomicUsize, segment_bytes: &AtomicUsize) -> bool {
    let segment_bytes = segment_bytes.load(Relaxed);
    let offset = addr.wrapping_sub(start.load(Relaxed));
    offset < segment_bytes && nbytes <= segment_bytes - offset
}

/// PE `pe`'s copy of the `nbytes` symmetric bytes at `address`, as a pointer into memory mapped here;
/// `None` leaves it to [`remote`] to find another way or to say why there is none.
#[inline(always)]
pub(crate) fn mapped<T>(address: *const T, nbytes: usize, pe: c_int) -> Option<*mut T> {
    let deltas = if within(address.addr(), nbytes, &MAP.heap, &MAP.heap_bytes) {
        &MAP.heap_deltas
    } else if within(address.addr(), nbytes, &MAP.statics, &MAP.static_bytes) {
        &MAP.static_deltas
    } else {
        return None;
    };
    if pe as u32 as usize >= MAP.n_pes.load(Relaxed) {
        return None;
    }
    // SAFETY: each table has `n_pes` entries and is never freed.
    let delta = unsafe { deltas.load(Relaxed).wrapping_add(pe as u32 as usize).read() };
    (delta != UNMAPPED).then(|| address.wrapping_byte_offset(delta).cast_mut())
}

/// The segment that holds `nbytes` bytes at `addr`, and their offset in it.
pub(crate) fn place(addr: usize, nbytes: usize) -> Option<(Segment, usize)> {
    if within(addr, nbytes, &MAP.heap, &MAP.heap_bytes) {
        return Some((Segment::Heap, addr - MAP.heap.load(Relaxed)));
    }
    let offset = addr.wrapping_sub(MAP.statics.load(Relaxed));
    let is_static = MAP.static_bytes.load(Relaxed) > 0 && statics::own().hold(offset, nbytes);
    is_static.then_some((Segment::Static, offset))
}

/// The delta of a PE for the addresses of a segment, where that is mapped here.
pub(crate) fn delta(segment: Segment, pe: c_int) -> Option<isize> {
    if pe as u32 as usize >= MAP.n_pes.load(Relaxed) {
        return None;
    }
    let deltas = match segment {
        // Both are in one slice.
        Segment::Heap | Segment::Internal => &MAP.heap_deltas,
        Segment::Static => &MAP.static_deltas,
    };
    // SAFETY: each table has `n_pes` entries and is never freed.
    let delta = unsafe { deltas.load(Relaxed).wrapping_add(pe as u32 as usize).read() };
    (delta != UNMAPPED).then_some(delta)
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
    match place(addr, nbytes) {
        Some((segment, offset)) if is_pe && network::is_open() => {
            RemoteAddr { segment, offset: offset as u64 }
        }
        _ => refuse(call, argument, addr, nbytes, pe),
    }
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
    match place(address.addr(), nbytes) {
        // SAFETY: that part of the segment, as was just found.
        Some((segment, offset)) => unsafe {
            Range::new(segment, offset, address.cast_mut(), nbytes)
        },
        None => refuse(call, argument, address.addr(), nbytes, 0),
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
    let (heap, heap_bytes) = (MAP.heap.load(Relaxed), MAP.heap_bytes.load(Relaxed));
    let (first, static_bytes) = (MAP.statics.load(Relaxed), MAP.static_bytes.load(Relaxed));
    if addr.wrapping_sub(heap) < heap_bytes {
        fail!(
            call,
            "argument {argument}: {nbytes} bytes at {addr:#x} reach beyond the symmetric heap \
             ({heap_bytes} bytes at {heap:#x})"
        );
    }
    if statics::own().hold(addr.wrapping_sub(first), 1) {
        fail!(
            call,
            "argument {argument}: {nbytes} bytes at {addr:#x} reach beyond the static data of the \
             program ({static_bytes} bytes at {first:#x})"
        );
    }
    fail!(
        call,
        "argument {argument}: {addr:#x} is not symmetric: neither in the symmetric heap \
         ({heap_bytes} bytes at {heap:#x}) nor a static variable of the program ({static_bytes} bytes \
         at {first:#x}); allocate it with shmem_malloc, or declare it static"
    );
}
