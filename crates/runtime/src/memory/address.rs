//! From a symmetric address and a PE to a pointer.
//!
//! This is all that an on-node access does before it touches memory: a compare for each segment in
//! which the address may lie, one for the PE, a load from the segment's table of deltas, and an
//! addition. An access that fails these compares takes the cold path, which finds another way to
//! the memory or reports why there is none. With `SHMEM_CHECK`, `SHMEM_STATS`, `SHMEM_TRACE` or
//! explanations of long waits the segments of the fast path are empty, so that every access takes
//! the cold path and is checked, counted or recorded there. When PEs outnumber the usable CPUs,
//! gets and fetching atomic operations have a table in which no PE is mapped, so that
//! `net::network` counts them.
#![allow(unsafe_code)]

use crate::memory::statics;
use core::ffi::c_int;
use rushmem_transport::{RemoteAddr, Segment};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicIsize, AtomicPtr, AtomicUsize, Ordering::Relaxed};

/// The data that every access reads: one cache line, and the next one for atomics on static data.
/// Only init and finalize write it, and the standard requires that no call overlaps them, so that
/// relaxed loads suffice.
#[repr(C, align(64))]
struct AddressMap {
    /// PEs in each table of deltas.
    n_pes: AtomicUsize,
    heap: OwnSegment,
    /// The static data. They may have holes, which are not mapped.
    statics: OwnSegment,
}

/// A segment of this PE.
#[repr(C)]
struct OwnSegment {
    start: AtomicUsize,
    /// At least [`MIN_BYTES`].
    nbytes: AtomicUsize,
    /// For each PE the number to add to an own address, or `UNMAPPED`.
    deltas: AtomicPtr<isize>,
    /// The deltas for words of atomic operations and signals: the table of `deltas`, or one of
    /// `UNMAPPED` if the network carries these out on every PE.
    word_deltas: AtomicPtr<isize>,
    /// The deltas for words that a program may poll, gets and fetching atomic operations: the
    /// tables above, or one of `UNMAPPED` if polls are counted.
    polled_deltas: AtomicPtr<isize>,
    polled_word_deltas: AtomicPtr<isize>,
}

/// The delta of a PE whose memory is not mapped here. Real ones are multiples of the page size.
const UNMAPPED: isize = 1;
/// The size of a segment that does not exist, at [`NOWHERE`]: larger than any word, so that the
/// size of a word need not be compared with that of the segment.
const MIN_BYTES: usize = 64;
/// An address that no process has.
const NOWHERE: usize = 1 << 63;

// `used` keeps the compiler from splitting it over several cache lines.
#[used]
static MAP: AddressMap = AddressMap {
    n_pes: AtomicUsize::new(0),
    heap: OwnSegment::closed(),
    statics: OwnSegment::closed(),
};

/// The bounds of segments while accesses are observed. The deltas are in [`MAP`].
static OBSERVED: AddressMap = AddressMap {
    n_pes: AtomicUsize::new(0),
    heap: OwnSegment::closed(),
    statics: OwnSegment::closed(),
};

impl OwnSegment {
    const fn closed() -> OwnSegment {
        OwnSegment {
            start: AtomicUsize::new(NOWHERE),
            nbytes: AtomicUsize::new(MIN_BYTES),
            deltas: AtomicPtr::new(std::ptr::null_mut()),
            word_deltas: AtomicPtr::new(std::ptr::null_mut()),
            polled_deltas: AtomicPtr::new(std::ptr::null_mut()),
            polled_word_deltas: AtomicPtr::new(std::ptr::null_mut()),
        }
    }

    fn open(&self, start: usize, nbytes: usize) {
        if nbytes >= MIN_BYTES {
            self.start.store(start, Relaxed);
            self.nbytes.store(nbytes, Relaxed);
        }
    }

    fn close(&self) {
        self.start.store(NOWHERE, Relaxed);
        self.nbytes.store(MIN_BYTES, Relaxed);
    }

    /// Returns the offset of `addr` in the segment, if `nbytes` bytes from there are in it.
    #[inline(always)]
    fn offset(&self, addr: usize, nbytes: usize) -> Option<usize> {
        let segment_bytes = self.nbytes.load(Relaxed);
        // SAFETY: nothing less is ever stored.
        unsafe { std::hint::assert_unchecked(segment_bytes >= MIN_BYTES) };
        let offset = addr.wrapping_sub(self.start.load(Relaxed));
        (nbytes <= segment_bytes && offset <= segment_bytes - nbytes).then_some(offset)
    }

    /// Returns true if a word is in the segment and as far aligned as that is. The offset of a
    /// misaligned word, rotated so that its low bits lead, is beyond any segment: that and the
    /// bounds are one compare.
    #[inline(always)]
    fn has_word<T>(&self, addr: usize) -> bool {
        let bits = size_of::<T>().trailing_zeros();
        let offset = addr.wrapping_sub(self.start.load(Relaxed));
        offset.rotate_right(bits) < self.nbytes.load(Relaxed) >> bits
    }

    /// Returns the number to add to an address in the segment to get that on `pe`, if mapped.
    #[inline(always)]
    fn delta(&self, pe: c_int) -> Option<isize> {
        look_up(&self.deltas, pe)
    }
}

impl AddressMap {
    /// Returns the segment that holds `nbytes` bytes at `addr`, and their offset in it.
    #[inline(always)]
    fn locate(&self, addr: usize, nbytes: usize) -> Option<(Segment, usize)> {
        if let Some(offset) = self.heap.offset(addr, nbytes) {
            return Some((Segment::Heap, offset));
        }
        let offset = self.statics.offset(addr, nbytes)?;
        statics::own().hold(offset, nbytes).then_some((Segment::Static, offset))
    }
}

/// Returns the delta of a PE in a table, if there is such a PE and it is mapped here.
#[inline(always)]
fn look_up(table: &AtomicPtr<isize>, pe: c_int) -> Option<isize> {
    if !is_pe(pe) {
        return None;
    }
    // SAFETY: every table has `n_pes` entries and is never freed.
    let delta = unsafe { table.load(Relaxed).wrapping_add(pe as u32 as usize).read() };
    (delta != UNMAPPED).then_some(delta)
}

/// Publishes which PEs are mapped here: one entry per PE, `None` if its memory is not mapped.
pub(crate) fn publish(heap_deltas: &[Option<isize>], static_deltas: &[Option<isize>]) {
    // Kept for the life of the process, so that a thread that overlaps finalize still reads valid
    // memory.
    let table = |deltas: &[Option<isize>]| {
        let table: Vec<isize> = deltas.iter().map(|d| d.unwrap_or(UNMAPPED)).collect();
        Box::leak(table.into_boxed_slice()).as_mut_ptr()
    };
    MAP.heap.deltas.store(table(heap_deltas), Relaxed);
    MAP.statics.deltas.store(table(static_deltas), Relaxed);
    MAP.n_pes.store(heap_deltas.len(), Relaxed);
    let apart = heap_deltas.iter().zip(static_deltas).any(|(h, s)| h.is_some() && s.is_none());
    SOME_STATICS_ARE_APART.store(apart, Relaxed);
}

/// Set if a PE's heap is mapped here and its static data are not.
static SOME_STATICS_ARE_APART: AtomicBool = AtomicBool::new(false);

/// Returns whether both this CPU and the network reach memory of `pe`: its heap is mapped here, its
/// static data are not.
pub(crate) fn statics_are_apart(pe: c_int) -> bool {
    MAP.heap.delta(pe).is_some() && MAP.statics.delta(pe).is_none()
}

/// Returns whether [`statics_are_apart`] for any PE.
pub(crate) fn some_statics_are_apart() -> bool {
    SOME_STATICS_ARE_APART.load(Relaxed)
}

/// Sets who carries out atomic operations and signals on mapped words in this job: the network,
/// whose operations do not compose with those of this CPU, or this CPU. After [`publish`].
pub(crate) fn atomics_by_network(by_network: bool) {
    for own in [&MAP.heap, &MAP.statics] {
        let table = if by_network { none_mapped() } else { own.deltas.load(Relaxed) };
        own.word_deltas.store(table, Relaxed);
    }
}

/// Sets whether accesses by which a program may poll take the cold path, which counts them. After
/// [`atomics_by_network`].
pub(crate) fn count_polls(count: bool) {
    for own in [&MAP.heap, &MAP.statics] {
        let table = |mapped: &AtomicPtr<isize>| match count {
            true => none_mapped(),
            false => mapped.load(Relaxed),
        };
        own.polled_deltas.store(table(&own.deltas), Relaxed);
        own.polled_word_deltas.store(table(&own.word_deltas), Relaxed);
    }
    POLLS_ARE_COUNTED.store(count, Relaxed);
}

static POLLS_ARE_COUNTED: AtomicBool = AtomicBool::new(false);

/// Returns true if accesses by which a program may poll take the cold path.
#[inline(always)]
pub(crate) fn are_polls_counted() -> bool {
    POLLS_ARE_COUNTED.load(Relaxed)
}

/// Returns a table in which no PE is mapped.
fn none_mapped() -> *mut isize {
    static NONE: OnceLock<Box<[AtomicIsize]>> = OnceLock::new();
    let table = || (0..MAP.n_pes.load(Relaxed)).map(|_| AtomicIsize::new(UNMAPPED)).collect();
    NONE.get_or_init(table).as_ptr().cast::<isize>().cast_mut()
}

/// Returns true if the network carries out atomic operations on words that are mapped here.
pub(crate) fn are_atomics_by_network() -> bool {
    MAP.heap.word_deltas.load(Relaxed) != MAP.heap.deltas.load(Relaxed)
}

/// Opens the fast path, or the one on which accesses are observed if `observed` is set;
/// again after [`close`], with the same PEs.
pub(crate) fn open(heap: *mut u8, heap_bytes: usize, observed: bool) {
    let map = if observed { &OBSERVED } else { &MAP };
    map.heap.open(heap.addr(), heap_bytes);
    map.statics.open(statics::own().start(), statics::own().nbytes());
}

/// Closes both paths: every access now ends the job with an error.
pub(crate) fn close() {
    for map in [&MAP, &OBSERVED] {
        map.heap.close();
        map.statics.close();
    }
}

/// Returns PE `pe`'s copy of the `nbytes` symmetric bytes at `address`, if it is mapped here.
#[inline(always)]
pub(crate) fn mapped<T>(address: *const T, nbytes: usize, pe: c_int) -> Option<*mut T> {
    bytes(address, nbytes, pe, |own| &own.deltas)
}

/// Works as [`mapped`] for a get: nothing is mapped where polls are counted.
#[inline(always)]
pub(crate) fn mapped_polled<T>(address: *const T, nbytes: usize, pe: c_int) -> Option<*mut T> {
    bytes(address, nbytes, pe, |own| &own.polled_deltas)
}

#[inline(always)]
fn bytes<T>(
    address: *const T,
    nbytes: usize,
    pe: c_int,
    table: impl Fn(&OwnSegment) -> &AtomicPtr<isize>,
) -> Option<*mut T> {
    let delta = if MAP.heap.offset(address.addr(), nbytes).is_some() {
        look_up(table(&MAP.heap), pe)?
    } else {
        MAP.statics.offset(address.addr(), nbytes)?;
        look_up(table(&MAP.statics), pe)?
    };
    Some(address.wrapping_byte_offset(delta).cast_mut())
}

/// Returns the segment that holds `nbytes` bytes at `addr`, and their offset in it.
#[inline]
pub(crate) fn locate(addr: usize, nbytes: usize) -> Option<(Segment, usize)> {
    OBSERVED.locate(addr, nbytes).or_else(|| locate_unchecked(addr, nbytes))
}

/// Works as [`place`]; `None` if accesses are to be checked or counted.
pub(crate) fn locate_unchecked(addr: usize, nbytes: usize) -> Option<(Segment, usize)> {
    MAP.locate(addr, nbytes)
}

/// Works as [`place`]; `None` if there is no PE `pe`, too.
#[inline(always)]
pub(super) fn place_on(addr: usize, nbytes: usize, pe: c_int) -> Option<(Segment, usize)> {
    locate(addr, nbytes).filter(|_| is_pe(pe))
}

/// Returns true if an address is in the heap, while accesses are observed.
#[inline(always)]
pub(super) fn is_in_observed_heap(addr: usize) -> bool {
    OBSERVED.heap.offset(addr, 1).is_some()
}

/// Works as [`mapped`], also while accesses are observed.
#[inline(always)]
pub(crate) fn reachable(addr: usize, nbytes: usize, pe: c_int) -> Option<*mut u8> {
    let (segment, _) = locate(addr, nbytes)?;
    let here = std::ptr::with_exposed_provenance_mut::<u8>(addr);
    Some(here.wrapping_byte_offset(delta(segment, pe)?))
}

/// Returns true if the heap of `pe` is mapped here.
#[inline(always)]
pub(crate) fn is_heap_mapped(pe: c_int) -> bool {
    MAP.heap.delta(pe).is_some()
}

/// Returns where this PE can load and store PE `pe`'s copy of a byte, allocated or not.
pub(crate) fn loadable<T>(address: *const T, pe: c_int) -> Option<*mut T> {
    reachable(address.addr(), 1, pe).map(<*mut u8>::cast)
}

/// Returns the delta of a PE for the addresses of a segment, where that is mapped here.
#[inline]
pub(crate) fn delta(segment: Segment, pe: c_int) -> Option<isize> {
    match segment {
        // Heap and internal area are in one slice.
        Segment::Heap | Segment::Internal => MAP.heap.delta(pe),
        Segment::Static => MAP.statics.delta(pe),
    }
}

/// Works as [`mapped`] for one word, which must be aligned to its size.
#[inline(always)]
pub(crate) fn mapped_word<T>(address: *const T, pe: c_int) -> Option<*mut T> {
    word(address, pe, |own| &own.deltas)
}

/// Works as [`mapped_word`] for an atomic operation: none where the network carries these out.
#[inline(always)]
pub(crate) fn mapped_atomic<T>(address: *const T, pe: c_int) -> Option<*mut T> {
    word(address, pe, |own| &own.word_deltas)
}

/// Works as [`mapped_word`] for a get: no word is mapped where polls are counted.
#[inline(always)]
pub(crate) fn mapped_polled_word<T>(address: *const T, pe: c_int) -> Option<*mut T> {
    word(address, pe, |own| &own.polled_deltas)
}

/// Works as [`mapped_atomic`] for an operation that returns the old value: no word is mapped where
/// polls are counted.
#[inline(always)]
pub(crate) fn mapped_polled_atomic<T>(address: *const T, pe: c_int) -> Option<*mut T> {
    word(address, pe, |own| &own.polled_word_deltas)
}

#[inline(always)]
fn word<T>(
    address: *const T,
    pe: c_int,
    table: impl Fn(&OwnSegment) -> &AtomicPtr<isize>,
) -> Option<*mut T> {
    let delta = if MAP.heap.has_word::<T>(address.addr()) {
        look_up(table(&MAP.heap), pe)?
    } else {
        cold_path();
        if !is_aligned(address) {
            return None;
        }
        MAP.statics.offset(address.addr(), size_of::<T>())?;
        opaque(look_up(table(&MAP.statics), pe)?)
    };
    let there = address.wrapping_byte_offset(delta).cast_mut();
    // SAFETY: aligned here, and deltas are multiples of the page size.
    unsafe { std::hint::assert_unchecked(is_aligned(there)) };
    Some(there)
}

/// Marks a path as cold, so that the other one runs without a jump.
#[cold]
#[inline]
fn cold_path() {}

/// Returns the number, opaque to the compiler, which may otherwise merge this load with that of
/// another path, after a computation of the address.
#[inline(always)]
fn opaque(mut number: isize) -> isize {
    // SAFETY: no instruction at all.
    unsafe {
        std::arch::asm!("/* {0} */", inout(reg) number, options(pure, nomem, nostack, preserves_flags));
    }
    number
}

/// Returns true if a word is aligned to its size, which may be more than its type requires.
#[inline(always)]
pub(crate) fn is_aligned<T>(address: *const T) -> bool {
    address.addr().is_multiple_of(size_of::<T>())
}

/// Returns the bytes of the heap on PE `pe`, for a transport; `checks::remote` finds others.
#[inline(always)]
pub(crate) fn remote_in_heap(addr: usize, nbytes: usize, pe: c_int) -> Option<RemoteAddr> {
    let offset = MAP.heap.offset(addr, nbytes)? as u64;
    is_pe(pe).then_some(RemoteAddr { segment: Segment::Heap, offset })
}

#[inline(always)]
fn is_pe(pe: c_int) -> bool {
    (pe as u32 as usize) < MAP.n_pes.load(Relaxed)
}
