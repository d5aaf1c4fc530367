//! Divides the memory that the detectors of all PEs share: counters, tables, clocks, and the shadow
//! of each PE's heap and static data.

use crate::shadow::{BIT_WORDS, HEAD_WORDS, PAGE, PART_WORDS, Page, Shadow};
use crate::shared::{Arena, Words};
use std::ops::Range;
use std::sync::atomic::AtomicU64;

// The tables are large, since what is never touched takes no memory.

/// Words for counters and locks.
const HEAD: usize = 64;
/// Words of the table of actors, one for each number of 16 bits. A job can have one actor less,
/// since number 0 is none. If the table is full, nothing is checked any more.
pub const MAX_ACTORS: usize = 1 << 16;
/// Maximum number of sites: places of the program that make accesses. Those beyond it are reported
/// as unknown.
pub const MAX_SITES: usize = 1 << 16;
/// Words of a site.
pub const SITE_WORDS: usize = 16;
/// Maximum number of files from which a program is loaded. Frames of those beyond it are not
/// reported.
pub const MAX_MODULES: usize = 64;
/// Words of a file: one that tells that the entry is used, and 256 bytes for the path.
pub const MODULE_WORDS: usize = 33;
/// Maximum number of pairs of sites whose race is counted; the first of them are also printed.
pub const MAX_PAIRS: usize = 1 << 12;
/// Entries of the table of words by which PEs synchronize. An entry is a key and a clock. Entries
/// are never removed.
pub const SYNC_ENTRIES: usize = 1 << 22;
/// The number of entries that share a lock. If they are all used, nothing is checked any more.
pub const SYNC_STRIPE: usize = 1 << 8;
/// The number of locks of words on which the program executes atomic operations. Operations on two
/// words with the same lock wait for each other.
pub const WORD_LOCKS: usize = 1 << 10;
/// Maximum number of collectives that have begun and that some member has not left.
pub const MAX_COLLECTIVES: usize = 1 << 12;
/// Words of a collective.
pub const COLLECTIVE_WORDS: usize = 8;
/// Words for clocks. If they are all used, nothing is checked any more.
const ARENA: usize = 1 << 28;

/// The parts of the shared memory.
#[derive(Clone, Copy)]
pub struct SharedAreas {
    /// The counters, and locks of other parts.
    pub head: Words,
    /// The role of each actor.
    pub actors: Words,
    /// The sites.
    pub sites: Words,
    /// The files that contain the sites.
    pub modules: Words,
    /// The pairs of sites whose race was counted.
    pub pairs: Words,
    /// The locks of `sync`.
    pub sync_locks: Words,
    /// The words by which PEs synchronize, with their clocks.
    pub sync: Words,
    /// The locks of words on which the program executes atomic operations.
    pub word_locks: Words,
    /// The collectives that some member has not left.
    pub collectives: Words,
    /// Blocks for clocks.
    pub arena: Arena,
    /// The shadows of all PEs in turn, of the heap and then of the static data.
    shadow: Shadow<'static>,
    segments: SegmentSizes,
}

/// The sizes of the symmetric segments of a PE.
#[derive(Clone, Copy)]
pub struct SegmentSizes {
    /// Bytes of the heap.
    pub heap_bytes: usize,
    /// Bytes of the static data.
    pub static_bytes: usize,
}

impl SegmentSizes {
    fn heap_pages(self) -> usize {
        self.heap_bytes.div_ceil(PAGE)
    }

    /// Returns the number of pages of both segments.
    fn pages(self) -> usize {
        self.heap_pages() + self.static_bytes.div_ceil(PAGE)
    }
}

/// The segment of a symmetric address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ShadowSegment {
    /// The symmetric heap.
    Heap,
    /// Static data.
    Static,
}

/// An address in the symmetric memory of a PE.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ShadowPlace {
    /// The world PE.
    pub pe: u32,
    /// The segment that contains it.
    pub segment: ShadowSegment,
    /// The number of bytes from the start of the segment.
    pub offset: usize,
}

/// A byte of memory.
#[derive(Clone, Copy, Debug)]
pub enum Memory {
    /// Symmetric memory of a PE.
    Symmetric(ShadowPlace),
    /// Private memory of this process, at this address.
    Private(usize),
}

impl SharedAreas {
    const SIZES: [usize; 10] = [
        HEAD,
        MAX_ACTORS,
        MAX_SITES * SITE_WORDS,
        MAX_MODULES * MODULE_WORDS,
        MAX_PAIRS,
        SYNC_ENTRIES / SYNC_STRIPE,
        SYNC_ENTRIES * 2,
        WORD_LOCKS,
        MAX_COLLECTIVES * COLLECTIVE_WORDS,
        ARENA,
    ];

    /// Returns the number of words of the shared memory.
    pub fn n_words(n_pes: u32, segments: SegmentSizes) -> usize {
        let of_page = HEAD_WORDS + BIT_WORDS + PART_WORDS;
        SharedAreas::SIZES.iter().sum::<usize>() + n_pes as usize * segments.pages() * of_page
    }

    /// Divides `words`, which are [`n_words`](Self::n_words), into the parts.
    pub fn new(words: Words, segments: SegmentSizes) -> SharedAreas {
        let mut rest = words;
        let [
            head,
            actors,
            sites,
            modules,
            pairs,
            sync_locks,
            sync,
            word_locks,
            collectives,
            arena,
        ] = SharedAreas::SIZES.map(|nwords| {
            let (part, after) = rest.split_at(nwords);
            rest = after;
            part
        });

        SharedAreas {
            head,
            actors,
            sites,
            modules,
            pairs,
            sync_locks,
            sync,
            word_locks,
            collectives,
            arena: Arena::new(arena),
            shadow: Shadow::new(rest),
            segments,
        }
    }

    /// Returns the shadow from the page of `place` on.
    pub fn from(&self, place: ShadowPlace) -> Shadow<'static> {
        self.shadow.from(self.page_index(place))
    }

    fn page_index(&self, place: ShadowPlace) -> usize {
        let before_segment = match place.segment {
            ShadowSegment::Heap => 0,
            ShadowSegment::Static => self.segments.heap_pages(),
        };
        place.pe as usize * self.segments.pages() + before_segment + place.offset / PAGE
    }

    /// Returns the shadow of the page that contains `place`.
    pub fn page(&self, place: ShadowPlace) -> Page<'static> {
        self.shadow.page(self.page_index(place))
    }
}

/// The bytes of a range on one page.
#[derive(Debug, PartialEq, Eq)]
pub struct PagePart {
    /// The offset or address of the page.
    pub page: usize,
    /// The bytes of the page.
    pub bytes: Range<usize>,
}

/// Returns the parts of `nbytes` bytes at an offset or address on each page.
pub fn by_page(offset: usize, nbytes: usize) -> impl Iterator<Item = PagePart> {
    let end = offset + nbytes;
    (offset / PAGE..end.div_ceil(PAGE)).map(move |index| {
        let page = index * PAGE;
        let start = offset.max(page) - page;
        let end = end.min(page + PAGE) - page;
        PagePart {
            page,
            bytes: start..end,
        }
    })
}

/// A word of [`SharedAreas::head`]: a counter or a lock. Counters are accessed in relaxed order,
/// except [`Closed`](Counter::Closed): they publish nothing, and a PE that sees a full table late
/// has only missed races.
#[derive(Clone, Copy)]
pub enum Counter {
    /// The number of races between different pairs of sites.
    Reported,
    /// The number of actors.
    Actors,
    /// Not 0 once a table is full. Nothing is checked any more then.
    Full,
    /// Operations that were checked.
    Operations,
    /// Loads and stores of the program that were checked.
    Accesses,
    /// The lock of the table of sites.
    Sites,
    /// The lock of reports.
    Reports,
    /// The lock of collectives.
    Collectives,
    /// The number of finalizations of all PEs.
    Closed,
    /// The number of finalizations of PEs whose program was compiled for the detector.
    Instrumented,
}

impl SharedAreas {
    /// Returns the word of a counter or a lock.
    pub fn counter(&self, counter: Counter) -> &'static AtomicU64 {
        &self.head[counter as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_cut_at_pages() {
        let part = |page, bytes| PagePart { page, bytes };
        let parts: Vec<_> = by_page(4000, 5000).collect();
        assert_eq!(
            parts,
            [part(0, 4000..4096), part(4096, 0..4096), part(8192, 0..808)]
        );
        let parts: Vec<_> = by_page(4096, 4096).collect();
        assert_eq!(parts, [part(4096, 0..4096)]);
        assert_eq!(by_page(10, 0).count(), 1, "an empty part, of no bytes");
    }
}
