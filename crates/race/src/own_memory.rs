//! The own symmetric memory of a process, as its loads and stores look at it that are not known: a
//! compare of addresses finds those of private memory, and a word of the shadow those that are
//! remembered already since the thread's epoch began.

use crate::access::ShadowKind;
use crate::actors::Thread;
use crate::areas::{ShadowPlace, ShadowSegment, SharedAreas};
use crate::known;
use crate::shadow::{PAGE, Page, Shadow};
use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The own memory of a process, and its shadow.
struct Own {
    heap: (usize, usize, Shadow<'static>),
    statics: (usize, usize, Shadow<'static>),
}

static OWN: OnceLock<Own> = OnceLock::new();
/// The ranges of symmetric memory: the own heap and static data, and those of other PEs that are
/// mapped. Each range is its first address and its bytes, which are none before the first
/// initialization.
static RANGES: [[AtomicUsize; 2]; 4] = [const { [const { AtomicUsize::new(0) }; 2] }; 4];

/// Begins to look: with the own segments, and the ranges of those of other PEs.
pub fn watch(areas: &SharedAreas, pe: u32, ranges: [Range<usize>; 4]) {
    let of = |segment, range: &Range<usize>| {
        let shadow = areas.from(ShadowPlace { pe, segment, offset: 0 });
        (range.start, range.len(), shadow)
    };
    let heap = of(ShadowSegment::Heap, &ranges[0]);
    let statics = of(ShadowSegment::Static, &ranges[1]);
    let _ = OWN.set(Own { heap, statics });
    for ([start, nbytes], range) in RANGES.iter().zip(ranges) {
        start.store(range.start, Relaxed);
        nbytes.store(range.len(), Relaxed);
    }
}

/// Gives the calling thread this actor and epoch.
pub fn set_stamp(thread: &Thread) {
    known::set_stamp(u64::from(thread.actor) << 48 | u64::from(thread.epoch()) << 16);
}

/// Returns true if an address may be symmetric memory, of any PE.
#[inline(always)]
pub fn may_be_symmetric(addr: usize) -> bool {
    let is_in = |[start, nbytes]: &[AtomicUsize; 2]| {
        addr.wrapping_sub(start.load(Relaxed)) < nbytes.load(Relaxed)
    };
    RANGES.iter().any(is_in)
}

/// Returns the shadow of own memory, and the offset in it, of an access within eight bytes.
#[inline]
pub fn find(addr: usize, nbytes: usize) -> Option<(Shadow<'static>, usize)> {
    let own = OWN.get()?;
    let of = |(start, len, shadow): (usize, usize, Shadow<'static>)| {
        let offset = addr.wrapping_sub(start);
        (offset < len).then_some((shadow, offset))
    };
    of(own.heap).or_else(|| of(own.statics)).filter(|_| addr % 8 + nbytes <= 8)
}

/// Returns true if an access within eight bytes of own memory is remembered.
#[inline]
pub fn is_known((shadow, offset): (Shadow<'_>, usize), nbytes: usize, kind: ShadowKind) -> bool {
    let mask = ((1u64 << nbytes) - 1) << (offset % 8);
    shadow.knows(offset, known::stamp() | mask << 8 | u64::from(kind.0))
}

/// Returns true if the access within eight bytes of a page of private memory is known.
#[inline]
pub fn is_known_on(page: Page<'_>, addr: usize, nbytes: usize, kind: ShadowKind) -> bool {
    let mask = ((1u64 << nbytes) - 1) << (addr % 8);
    let stamp = known::stamp() | mask << 8 | u64::from(kind.0);
    page.knows(addr % PAGE, stamp)
}
