//! The symmetric memory of this process, for loads and stores that are not in the thread's cache
//! ([`known`]): a comparison of addresses excludes private memory, and a word of the shadow tells
//! whether the access is already recorded in the thread's epoch.

use crate::access::ShadowKind;
use crate::areas::{ShadowPlace, ShadowSegment, SharedAreas};
use crate::known;
use crate::shadow::{Page, Shadow};
use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The symmetric segments of this PE: the first address, the number of bytes, and the shadow.
struct Own {
    heap: (usize, usize, Shadow<'static>),
    statics: (usize, usize, Shadow<'static>),
}

static OWN: OnceLock<Own> = OnceLock::new();
/// The ranges of symmetric memory: the own heap and static data, then one range around all heaps,
/// and one around all static data, of other PEs that are mapped. Each range is its first address
/// and its number of bytes, which is 0 before the first initialization. Relaxed: init stores them,
/// which no call of the program overlaps, and `OWN` publishes the shadow.
static RANGES: [[AtomicUsize; 2]; 4] = [const { [const { AtomicUsize::new(0) }; 2] }; 4];

/// Starts to watch four ranges of symmetric memory: this PE's heap and static data, and the ranges
/// that contain all mapped heaps and static data of other PEs.
pub fn watch(areas: &SharedAreas, pe: u32, ranges: [Range<usize>; 4]) {
    let of = |segment, range: &Range<usize>| {
        let shadow = areas.from(ShadowPlace {
            pe,
            segment,
            offset: 0,
        });
        (range.start, range.len(), shadow)
    };
    let heap = of(ShadowSegment::Heap, &ranges[0]);
    let statics = of(ShadowSegment::Static, &ranges[1]);
    // The runtime starts the detector once in a process, so this cannot fail.
    let _ = OWN.set(Own { heap, statics });
    for ([start, nbytes], range) in RANGES.iter().zip(ranges) {
        start.store(range.start, Relaxed);
        nbytes.store(range.len(), Relaxed);
    }
}

/// Returns true if an address may be in symmetric memory of any PE. It may be private nevertheless,
/// between the segments of two other PEs.
#[inline(always)]
pub fn may_be_symmetric(addr: usize) -> bool {
    let is_in = |[start, nbytes]: &[AtomicUsize; 2]| {
        addr.wrapping_sub(start.load(Relaxed)) < nbytes.load(Relaxed)
    };
    RANGES.iter().any(is_in)
}

/// Returns the shadow of the segment of own memory that an address is in, and the offset in it.
#[inline(always)]
pub fn find(addr: usize) -> Option<(&'static Shadow<'static>, usize)> {
    let own = OWN.get()?;
    [&own.heap, &own.statics]
        .into_iter()
        .find_map(|(start, len, shadow)| {
            let offset = addr.wrapping_sub(*start);
            (offset < *len).then_some((shadow, offset))
        })
}

/// Returns true if an access within eight bytes at an offset of a page is recorded in the shadow
/// for the calling thread's current epoch.
#[inline]
pub fn is_known((page, offset): (Page<'_>, usize), nbytes: usize, kind: ShadowKind) -> bool {
    let mask = ((1u64 << nbytes) - 1) << (offset % 8);
    page.knows(offset, known::stamp() | mask << 8 | u64::from(kind.0))
}
