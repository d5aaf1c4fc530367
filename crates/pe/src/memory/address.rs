//! Turns a symmetric address and a PE into a pointer: the fast path of an access.
//!
//! Before an on-node access reads or writes memory, it makes a compare for each segment that may
//! contain the address, one for the PE, a load from the segment's table of deltas, a compare of the
//! delta, and an addition. If a compare fails, the access takes the cold path, which uses the
//! network or reports the error. While accesses are observed (`SHMEM_CHECK`, `SHMEM_STATS`,
//! `SHMEM_TRACE`, explanations of long waits, ThreadSanitizer), the segments of the fast path are
//! closed, so that every access takes the cold path and is observed there.
#![allow(unsafe_code)]

use crate::memory::buffers::RegisteredBuffers;
use crate::memory::images::{Deltas, UNMAPPED};
use crate::memory::statics;
use core::ffi::c_int;
use rushmem_transport::{Pe, RemoteAddr, Segment};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicIsize, AtomicPtr, AtomicUsize, Ordering::Relaxed};

/// The data that every access reads. Those for the heap are in one cache line. Only init, finalize
/// and a forked child write it. The standard requires that no call overlaps init or finalize, so
/// relaxed loads suffice.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct AddressMap {
    /// The number of entries in each table of deltas.
    n_pes: AtomicUsize,
    heap: OwnSegment,
    /// The static data, which may have holes that are not mapped.
    statics: OwnSegment,
    /// The registered buffers, which accesses search last, off the fast path.
    buffers: RegisteredBuffers,
}

/// A segment of this PE.
#[derive(Debug)]
#[repr(C)]
struct OwnSegment {
    start: AtomicUsize,
    /// At least [`MIN_BYTES`]: the code of an access relies on it.
    nbytes: AtomicUsize,
    /// For each PE, the distance in bytes from an address of this PE to the address at which the
    /// same byte of that PE is mapped here, or [`UNMAPPED`].
    deltas: AtomicPtr<isize>,
    /// The table for atomic operations and signals: `deltas`, or one in which no PE is mapped if
    /// the network carries these out on every PE.
    word_deltas: AtomicPtr<isize>,
    /// The tables for gets and for fetching atomic operations, by which a program may poll: see
    /// [`set_polls_counted`].
    polled_deltas: AtomicPtr<isize>,
    polled_word_deltas: AtomicPtr<isize>,
}

/// The minimum size of a segment, and the size of a closed one, which begins at [`NOWHERE`]. It is
/// larger than any word, so that an access to a word need not compare sizes.
const MIN_BYTES: usize = 64;
/// An address that no process has.
const NOWHERE: usize = 1 << 63;

// `used` keeps the compiler from splitting the fields over several cache lines.
#[used]
static MAP: AddressMap = AddressMap::closed();

/// The bounds of the segments while accesses are observed. The deltas are in [`MAP`].
static OBSERVED: AddressMap = AddressMap::closed();

/// Returns the map of the PE of this process, which the fast path of accesses reads.
pub fn of_process() -> &'static AddressMap {
    &MAP
}

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

    /// Sets the bounds. A segment of fewer than [`MIN_BYTES`] bytes stays closed.
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
        // SAFETY: `closed`, `open` and `close` store no smaller `nbytes`, and nothing else does.
        unsafe { std::hint::assert_unchecked(segment_bytes >= MIN_BYTES) };
        let offset = addr.wrapping_sub(self.start.load(Relaxed));
        (nbytes <= segment_bytes && offset <= segment_bytes - nbytes).then_some(offset)
    }

    /// Returns true if a word is in the segment and aligned relative to its start. One compare
    /// tests both: the offset of a misaligned word, rotated so that its low bits become the highest
    /// ones, is beyond any segment.
    #[inline(always)]
    fn has_word<T>(&self, addr: usize) -> bool {
        let bits = size_of::<T>().trailing_zeros();
        let offset = addr.wrapping_sub(self.start.load(Relaxed));
        offset.rotate_right(bits) < self.nbytes.load(Relaxed) >> bits
    }

    /// Returns the delta of `pe`, if its segment is mapped here.
    #[inline(always)]
    fn delta(&self, pe: c_int) -> Option<isize> {
        look_up(&self.deltas, pe)
    }
}

impl AddressMap {
    /// Returns the map of a PE that has published no deltas and opened no segment.
    pub const fn closed() -> AddressMap {
        AddressMap {
            n_pes: AtomicUsize::new(0),
            heap: OwnSegment::closed(),
            statics: OwnSegment::closed(),
            buffers: RegisteredBuffers::new(),
        }
    }

    /// Publishes the deltas of all PEs. CPUs carry out atomic operations on words that are mapped,
    /// unless [`set_atomics_by_network`] says otherwise.
    pub fn publish(&self, heap: Deltas, statics: Deltas) {
        for (own, deltas) in [(&self.heap, heap), (&self.statics, statics)] {
            let table = deltas.0.as_ptr().cast::<isize>().cast_mut();
            own.deltas.store(table, Relaxed);
            own.word_deltas.store(table, Relaxed);
        }
        // After the tables, which have that many entries.
        self.n_pes.store(heap.0.len(), Relaxed);
    }

    /// Returns true if the network carries out atomic operations on words that are mapped here.
    #[inline]
    pub fn are_atomics_by_network(&self) -> bool {
        self.heap.word_deltas.load(Relaxed) != self.heap.deltas.load(Relaxed)
    }

    /// Returns the registered buffers.
    pub fn buffers(&self) -> &RegisteredBuffers {
        &self.buffers
    }

    /// Sets the bounds of the heap.
    pub fn open_heap(&self, heap: *mut u8, heap_bytes: usize) {
        self.heap.open(heap.addr(), heap_bytes);
    }

    /// Returns the offset in the heap of `nbytes` bytes at `addr`, if they are in it.
    #[inline(always)]
    pub(crate) fn offset_in_heap(&self, addr: usize, nbytes: usize) -> Option<usize> {
        self.heap.offset(addr, nbytes)
    }

    /// Returns the segment that holds `nbytes` bytes at `addr`, and their offset in it; `None` if
    /// neither segment does.
    #[inline(always)]
    pub(crate) fn locate(&self, addr: usize, nbytes: usize) -> Option<(Segment, usize)> {
        if let Some(offset) = self.offset_in_heap(addr, nbytes) {
            return Some((Segment::Heap, offset));
        }
        let offset = self.statics.offset(addr, nbytes)?;
        statics::own()
            .contains(offset, nbytes)
            .then_some((Segment::Static, offset))
    }
}

/// The number of a PE of the world, which exists or is checked when a table is read.
pub trait PeNumber: Copy {
    /// Returns the number, if there is such a PE.
    fn existing(self) -> Option<ExistingPe>;
    /// Returns the number in the form of C.
    fn number(self) -> c_int;
}

impl PeNumber for c_int {
    #[inline(always)]
    fn existing(self) -> Option<ExistingPe> {
        ExistingPe::new(self as u32 as usize)
    }

    #[inline(always)]
    fn number(self) -> c_int {
        self
    }
}

/// The number of a PE of the world that exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ExistingPe(usize);

impl ExistingPe {
    /// Returns the PE of this number, if there is one.
    #[inline(always)]
    pub fn new(pe: usize) -> Option<ExistingPe> {
        (pe < MAP.n_pes.load(Relaxed)).then_some(ExistingPe(pe))
    }
}

impl PeNumber for ExistingPe {
    #[inline(always)]
    fn existing(self) -> Option<ExistingPe> {
        Some(self)
    }

    #[inline(always)]
    fn number(self) -> c_int {
        self.0 as c_int
    }
}

/// Returns the delta of a PE from a table; `None` if there is no such PE or it is not mapped.
#[inline(always)]
fn look_up(table: &AtomicPtr<isize>, pe: impl PeNumber) -> Option<isize> {
    let ExistingPe(pe) = pe.existing()?;
    // SAFETY: `pe` is below `n_pes`, which never becomes smaller. `publish` sets `deltas` before
    // `n_pes`. The other tables are set before `open`, and are read only for an address in an open
    // segment. Every table has `n_pes` entries and is never freed.
    let delta = unsafe { table.load(Relaxed).wrapping_add(pe).read() };
    (delta != UNMAPPED).then_some(delta)
}

/// Publishes the deltas of all PEs.
pub fn publish(heap: Deltas, statics: Deltas) {
    MAP.publish(heap, statics);
    let apart =
        heap.0.iter().zip(statics.0).any(|(heap, statics)| {
            heap.load(Relaxed) != UNMAPPED && statics.load(Relaxed) == UNMAPPED
        });
    SOME_STATICS_ARE_APART.store(apart, Relaxed);
}

/// True if some PE's heap is mapped here and its static data are not.
static SOME_STATICS_ARE_APART: AtomicBool = AtomicBool::new(false);

/// Returns true if the heap of `pe` is mapped here and its static data are not, so that this CPU
/// and the network both change memory of `pe`.
#[inline]
pub fn statics_are_apart(pe: c_int) -> bool {
    MAP.heap.delta(pe).is_some() && MAP.statics.delta(pe).is_none()
}

/// Returns true if [`statics_are_apart`] for any PE.
#[inline]
pub fn some_statics_are_apart() -> bool {
    SOME_STATICS_ARE_APART.load(Relaxed)
}

/// Sets whether the network carries out atomic operations and signals even on mapped words, since
/// its operations are not atomic with respect to those of CPUs. Called after [`publish`].
pub fn set_atomics_by_network(by_network: bool) {
    for own in [&MAP.heap, &MAP.statics] {
        let table = if by_network {
            none_mapped()
        } else {
            own.deltas.load(Relaxed)
        };
        own.word_deltas.store(table, Relaxed);
    }
}

/// Sets whether accesses by which a program may poll take the cold path, which counts them, as when
/// PEs outnumber the usable CPUs. Called after [`set_atomics_by_network`].
///
/// These accesses have tables of their own, and use one in which no PE is mapped while they are
/// counted. So where they are not, counting costs the fast path nothing: no test, no instruction.
pub fn set_polls_counted(count: bool) {
    // Relaxed, also while threads are in calls. They read either table, and both are complete:
    // those of `publish`, and that of `prepare_to_count_polls`, which init has made.
    for own in [&MAP.heap, &MAP.statics] {
        let mut deltas = own.deltas.load(Relaxed);
        let mut word_deltas = own.word_deltas.load(Relaxed);
        if count {
            deltas = none_mapped();
            word_deltas = none_mapped();
        }
        own.polled_deltas.store(deltas, Relaxed);
        own.polled_word_deltas.store(word_deltas, Relaxed);
    }
    POLLS_ARE_COUNTED.store(count, Relaxed);
}

/// Makes the table that [`set_polls_counted`] needs, so that a signal handler may call it.
pub fn prepare_to_count_polls() {
    none_mapped();
}

static POLLS_ARE_COUNTED: AtomicBool = AtomicBool::new(false);

/// Returns true if accesses by which a program may poll take the cold path.
#[inline(always)]
pub fn are_polls_counted() -> bool {
    POLLS_ARE_COUNTED.load(Relaxed)
}

/// Returns a table in which no PE is mapped.
fn none_mapped() -> *mut isize {
    static NONE: OnceLock<Box<[AtomicIsize]>> = OnceLock::new();
    let table = NONE.get_or_init(|| {
        (0..MAP.n_pes.load(Relaxed))
            .map(|_| AtomicIsize::new(UNMAPPED))
            .collect()
    });
    table.as_ptr().cast::<isize>().cast_mut()
}

/// Returns true if the network carries out atomic operations on words that are mapped here.
#[inline]
pub fn are_atomics_by_network() -> bool {
    MAP.are_atomics_by_network()
}

/// Sets the bounds of the segments: of the fast path, or of the path of observed accesses if
/// `observed` is set.
pub fn open(heap: *mut u8, heap_bytes: usize, observed: bool) {
    let map = if observed { &OBSERVED } else { &MAP };
    map.open_heap(heap, heap_bytes);
    map.statics
        .open(statics::own().start(), statics::own().nbytes());
}

/// Closes all segments: an access to any byte then ends the job with an error. CPUs carry out
/// atomic operations again, unless the next init opens a network that does.
pub fn close() {
    set_atomics_by_network(false);
    for map in [&MAP, &OBSERVED] {
        map.heap.close();
        map.statics.close();
    }
}

/// Returns the copy on `pe` of the `nbytes` symmetric bytes at `address`, if it is mapped here;
/// `None` while accesses are observed.
#[inline(always)]
pub fn mapped<T>(address: *const T, nbytes: usize, pe: impl PeNumber) -> Option<*mut T> {
    bytes(address, nbytes, pe, |own| &own.deltas)
}

/// Returns what [`mapped`] does, for a get; `None` while polls are counted.
#[inline(always)]
pub fn mapped_polled<T>(address: *const T, nbytes: usize, pe: impl PeNumber) -> Option<*mut T> {
    bytes(address, nbytes, pe, |own| &own.polled_deltas)
}

#[inline(always)]
fn bytes<T>(
    address: *const T,
    nbytes: usize,
    pe: impl PeNumber,
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

/// Returns the segment that holds `nbytes` bytes at `addr`, and their offset in it; `None` if they
/// are not symmetric. Those of a registered buffer are in the heap.
#[inline]
pub fn locate(addr: usize, nbytes: usize) -> Option<(Segment, usize)> {
    locate_in_segments(addr, nbytes).or_else(|| {
        let buffer = MAP.buffers.find(addr, nbytes)?;
        locate_in_segments(buffer.in_heap + (addr - buffer.start), nbytes)
    })
}

#[inline]
fn locate_in_segments(addr: usize, nbytes: usize) -> Option<(Segment, usize)> {
    OBSERVED
        .locate(addr, nbytes)
        .or_else(|| locate_unobserved(addr, nbytes))
}

/// Returns the address in the heap of bytes that are in a registered buffer of this PE; otherwise
/// their address.
#[inline]
pub fn own_in_heap(addr: usize, nbytes: usize) -> usize {
    if MAP.buffers.are_any() {
        own_among_buffers(addr, nbytes)
    } else {
        addr
    }
}

#[cold]
fn own_among_buffers(addr: usize, nbytes: usize) -> usize {
    match MAP.buffers.find(addr, nbytes) {
        Some(buffer) => buffer.in_heap + (addr - buffer.start),
        None => addr,
    }
}

/// Returns the symmetric address of bytes on `pe` which are at `addr` here, an address in the heap
/// or in the static data: of those of a registered buffer, that of their place on `pe`.
pub fn on_pe(addr: usize, pe: Pe) -> usize {
    if !MAP.buffers.are_any() {
        return addr;
    }
    match MAP.buffers.find_in_heap(addr) {
        Some(buffer) => addr.wrapping_add_signed(buffer.images.shift(pe)),
        None => addr,
    }
}

/// Returns the segment of a symmetric place, and a number of it that is the same on all PEs; `None`
/// if it is not symmetric. For a registered buffer the number is no offset.
pub fn place_on_all_pes(addr: usize, nbytes: usize) -> Option<(Segment, usize)> {
    match MAP.buffers.find(addr, nbytes) {
        Some(buffer) if !buffer.is_same_on_all() => {
            Some((Segment::Heap, buffer.place_on_all_pes(addr)))
        }
        _ => locate(addr, nbytes),
    }
}

/// Returns the symmetric address in the heap that names on `pe` the bytes of a registered buffer
/// which `addr` names here; `None` if they are in no buffer.
#[inline(always)]
pub fn registered_on(addr: usize, nbytes: usize, pe: c_int) -> Option<usize> {
    if !MAP.buffers.are_any() {
        return None;
    }
    let buffer = MAP.buffers.find(addr, nbytes)?;
    // A number that is no PE is refused where the address is used.
    let shift = buffer.images.shift(Pe(pe as u32));
    Some((buffer.in_heap + (addr - buffer.start)).wrapping_add_signed(shift))
}

/// Returns what [`registered_on`] does if the bytes are in the buffer that an access has found
/// last.
#[inline(always)]
pub fn last_registered_on(addr: usize, nbytes: usize, pe: c_int) -> Option<usize> {
    let (in_heap, images) = MAP.buffers.find_last(addr, nbytes)?;
    Some(in_heap.wrapping_add_signed(images.shift(Pe(pe as u32))))
}

/// Returns the segment that holds `nbytes` bytes at `addr`, and their offset in it; `None` while
/// accesses are observed.
pub(crate) fn locate_unobserved(addr: usize, nbytes: usize) -> Option<(Segment, usize)> {
    MAP.locate(addr, nbytes)
}

/// Returns the segment that holds `nbytes` bytes at `addr`, and their offset in it; `None` if there
/// is no PE `pe`.
#[inline(always)]
pub(super) fn locate_on(addr: usize, nbytes: usize, pe: c_int) -> Option<(Segment, usize)> {
    locate(addr, nbytes).filter(|_| is_pe(pe))
}

/// Returns the segment that holds an address, but `None` while accesses are not observed.
#[inline(always)]
pub(super) fn observed_segment(addr: usize) -> Option<Segment> {
    OBSERVED.locate(addr, 1).map(|(segment, _)| segment)
}

/// Returns the copy on `pe` of the `nbytes` symmetric bytes at `addr`, if it is mapped here.
/// Unlike [`mapped`], this works while accesses are observed, too.
#[inline(always)]
pub fn reachable(addr: usize, nbytes: usize, pe: c_int) -> Option<*mut u8> {
    let addr = registered_on(addr, nbytes, pe).unwrap_or(addr);
    let (segment, _) = locate(addr, nbytes)?;
    let here = std::ptr::with_exposed_provenance_mut::<u8>(addr);
    Some(here.wrapping_byte_offset(delta(segment, pe)?))
}

/// Returns true if the heap of `pe` is mapped here.
#[inline(always)]
pub fn is_heap_mapped(pe: c_int) -> bool {
    MAP.heap.delta(pe).is_some()
}

/// Returns the delta of `pe` for a segment, if that segment of `pe` is mapped here.
#[inline]
pub fn delta(segment: Segment, pe: c_int) -> Option<isize> {
    match segment {
        // The heap and the internal area of a PE are contiguous and have the same delta.
        Segment::Heap | Segment::Internal => MAP.heap.delta(pe),
        Segment::Static => MAP.statics.delta(pe),
    }
}

/// Returns the copy of a symmetric word on `pe`, if it is mapped here and aligned to its size;
/// `None` while accesses are observed.
#[inline(always)]
pub fn mapped_word<T>(address: *const T, pe: impl PeNumber) -> Option<*mut T> {
    word(address, pe, |own| &own.deltas)
}

/// Returns what [`mapped_word`] does, for an atomic operation; `None` where the network carries
/// these out.
#[inline(always)]
pub fn mapped_atomic<T>(address: *const T, pe: impl PeNumber) -> Option<*mut T> {
    word(address, pe, |own| &own.word_deltas)
}

/// Returns what [`mapped_word`] does, for a get; `None` while polls are counted.
#[inline(always)]
pub fn mapped_polled_word<T>(address: *const T, pe: impl PeNumber) -> Option<*mut T> {
    word(address, pe, |own| &own.polled_deltas)
}

/// Returns what [`mapped_atomic`] does, for an operation that returns the old value; `None` while
/// polls are counted.
#[inline(always)]
pub fn mapped_polled_atomic<T>(address: *const T, pe: impl PeNumber) -> Option<*mut T> {
    word(address, pe, |own| &own.polled_word_deltas)
}

#[inline(always)]
fn word<T>(
    address: *const T,
    pe: impl PeNumber,
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
    // SAFETY: the address was found aligned to its size, and deltas are multiples of the page size.
    // In the heap it was found aligned relative to the start, which is the start of a page.
    unsafe { std::hint::assert_unchecked(is_aligned(there)) };
    Some(there)
}

/// Marks a path as cold, so that the compiler puts its code elsewhere and the other path has no
/// jump.
#[cold]
#[inline]
fn cold_path() {}

/// Returns the number, but hides its origin from the compiler, which may otherwise merge the load
/// of this path with the load of the other path. That adds a computation of the address to both.
#[inline(always)]
fn opaque(mut number: isize) -> isize {
    // SAFETY: the assembly is a comment.
    unsafe {
        std::arch::asm!("/* {0} */", inout(reg) number, options(pure, nomem, nostack, preserves_flags));
    }
    number
}

/// Returns true if a word is aligned to its size, which may be more than the alignment of its type.
#[inline(always)]
pub(crate) fn is_aligned<T>(address: *const T) -> bool {
    address.addr().is_multiple_of(size_of::<T>())
}

/// Returns the location of bytes of the heap for a transport; `None` if they are not in the heap,
/// there is no PE `pe`, or accesses are observed.
#[inline(always)]
pub fn remote_in_heap(addr: usize, nbytes: usize, pe: c_int) -> Option<RemoteAddr> {
    let offset = MAP.heap.offset(addr, nbytes)? as u64;
    is_pe(pe).then_some(RemoteAddr {
        segment: Segment::Heap,
        offset,
    })
}

/// Returns true if there is a PE `pe`.
#[inline(always)]
pub(super) fn is_pe(pe: c_int) -> bool {
    pe.existing().is_some()
}
