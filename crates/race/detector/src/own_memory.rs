//! The symmetric memory of this process, for loads and stores that are not in the thread's cache
//! ([`known`]): a comparison of addresses excludes private memory, and a word of the shadow tells
//! whether the access is already recorded in the thread's epoch.

use crate::access::ShadowKind;
use crate::areas::{ShadowPlace, ShadowSegment, SharedAreas};
use crate::known;
use crate::shadow::{PAGE, Page, Shadow, word_mask};
use rushmem_race_interface::BufferPlace;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{OnceLock, PoisonError, RwLock};

/// A symmetric segment of this PE.
pub struct OwnSegment {
    /// Which segment it is.
    pub segment: ShadowSegment,
    /// The shadow, from its first page on.
    pub shadow: Shadow<'static>,
    start: usize,
    nbytes: usize,
}

/// The heap and the static data of this PE.
static OWN: OnceLock<[OwnSegment; 2]> = OnceLock::new();

/// A range of addresses.
struct WatchedRange {
    start: AtomicUsize,
    nbytes: AtomicUsize,
}

/// The ranges of symmetric memory, in the order of [`WatchedRanges`]. They are empty before the
/// first initialization. Relaxed: init stores them, which no call of the program overlaps, and
/// `OWN` publishes the shadow.
static RANGES: [WatchedRange; 4] = [const {
    WatchedRange {
        start: AtomicUsize::new(0),
        nbytes: AtomicUsize::new(0),
    }
}; 4];

/// The range from the first to the last registered buffer of the program; empty if there is none.
static AROUND_BUFFERS: WatchedRange = WatchedRange {
    start: AtomicUsize::new(0),
    nbytes: AtomicUsize::new(0),
};

/// The registered buffers, by ascending addresses.
static BUFFERS: RwLock<Vec<BufferPlace>> = RwLock::new(Vec::new());

/// Sets the registered buffers of this PE.
pub fn set_buffers(mut buffers: Vec<BufferPlace>) {
    buffers.sort_unstable_by_key(|buffer| buffer.start);
    let start = buffers.first().map_or(0, |buffer| buffer.start);
    let end = buffers
        .last()
        .map_or(0, |buffer| buffer.start + buffer.nbytes);
    *BUFFERS.write().unwrap_or_else(PoisonError::into_inner) = buffers;

    // Relaxed: no thread uses a buffer while it is registered or ends to be.
    AROUND_BUFFERS.start.store(start, Relaxed);
    AROUND_BUFFERS.nbytes.store(end - start, Relaxed);
}

/// Returns the address in the heap of a byte of a registered buffer; other addresses as they are.
#[inline(always)]
pub fn in_heap(addr: usize) -> usize {
    let distance = addr.wrapping_sub(AROUND_BUFFERS.start.load(Relaxed));
    if distance < AROUND_BUFFERS.nbytes.load(Relaxed) {
        in_heap_of_buffer(addr)
    } else {
        addr
    }
}

#[cold]
#[inline(never)]
fn in_heap_of_buffer(addr: usize) -> usize {
    // A signal handler may have interrupted a change, for which it cannot wait.
    let Ok(buffers) = BUFFERS.try_read() else {
        return addr;
    };
    let n = buffers.partition_point(|buffer| buffer.start <= addr);
    match buffers[..n].last() {
        Some(buffer) if addr - buffer.start < buffer.nbytes => {
            buffer.in_heap + (addr - buffer.start)
        }
        _ => addr,
    }
}

/// Ranges of symmetric memory: the two segments of this PE, and the ranges from the first to the
/// last one of those of other PEs that are mapped.
pub struct WatchedRanges {
    /// The heap of this PE.
    pub own_heap: Range<usize>,
    /// The static data of this PE.
    pub own_statics: Range<usize>,
    /// The heaps of other PEs.
    pub other_heaps: Range<usize>,
    /// The static data of other PEs.
    pub other_statics: Range<usize>,
}

/// A byte of this PE's symmetric memory.
#[derive(Clone, Copy)]
pub struct OwnByte {
    /// The segment that contains it.
    pub of: &'static OwnSegment,
    /// The offset in the segment.
    pub offset: usize,
}

impl OwnByte {
    /// Returns the shadow of the byte's page.
    #[inline(always)]
    pub fn page(self) -> Page<'static> {
        self.of.shadow.page(self.offset / PAGE)
    }

    /// Returns the offset in the page.
    #[inline(always)]
    pub fn offset_in_page(self) -> usize {
        self.offset % PAGE
    }
}

/// Starts to watch symmetric memory, for PE `pe`.
pub fn watch(areas: &SharedAreas, pe: u32, ranges: WatchedRanges) {
    let WatchedRanges {
        own_heap,
        own_statics,
        other_heaps,
        other_statics,
    } = ranges;

    let segments = [
        (ShadowSegment::Heap, &own_heap),
        (ShadowSegment::Static, &own_statics),
    ];
    let own = segments.map(|(segment, addresses)| OwnSegment {
        segment,
        shadow: areas.from(ShadowPlace {
            pe,
            segment,
            offset: 0,
        }),
        start: addresses.start,
        nbytes: addresses.len(),
    });
    // The runtime starts the detector once in a process, so this cannot fail.
    let _ = OWN.set(own);

    let all = [own_heap, own_statics, other_heaps, other_statics];
    for (watched, range) in RANGES.iter().zip(all) {
        watched.start.store(range.start, Relaxed);
        watched.nbytes.store(range.len(), Relaxed);
    }
}

/// Returns true if an address may be in symmetric memory of any PE. It may be private nevertheless,
/// between the segments of two other PEs.
#[inline(always)]
pub fn may_be_symmetric(addr: usize) -> bool {
    // One comparison for each range: an address below the start wraps to a large number.
    RANGES
        .iter()
        .any(|range| addr.wrapping_sub(range.start.load(Relaxed)) < range.nbytes.load(Relaxed))
}

/// Returns the place of an address in the symmetric memory of this PE; `None` for other memory.
#[inline(always)]
pub fn find(addr: usize) -> Option<OwnByte> {
    OWN.get()?.iter().find_map(|segment| {
        let offset = addr.wrapping_sub(segment.start);
        (offset < segment.nbytes).then_some(OwnByte {
            of: segment,
            offset,
        })
    })
}

/// Returns true if an access to `nbytes` bytes from an offset of a page, all within eight bytes, is
/// recorded in the shadow for the calling thread's current epoch.
#[inline]
pub fn is_known(page: Page<'_>, offset: usize, nbytes: usize, kind: ShadowKind) -> bool {
    let mask = word_mask(offset, nbytes);
    page.knows(offset, known::stamp() | mask << 8 | u64::from(kind.0))
}
