//! Where the images of symmetric bytes are: how far the memory of each PE is from that of this one.

use rushmem_transport::{Pe, Segment};
use std::sync::atomic::{AtomicIsize, AtomicUsize, Ordering::Relaxed};

/// The delta of a PE whose memory is not mapped here. Real ones are multiples of the page size.
pub(super) const UNMAPPED: isize = 1;

/// The deltas of all PEs for one segment, or for a registered buffer. Relaxed: those of a buffer
/// change while no PE uses it, others never.
#[derive(Clone, Copy, Debug)]
pub struct Deltas(pub(super) &'static [AtomicIsize]);

impl Deltas {
    /// Makes the table of these deltas; `None` for a PE whose memory is not mapped here.
    pub fn table(deltas: impl Iterator<Item = Option<isize>>) -> Box<[AtomicIsize]> {
        deltas
            .map(|delta| AtomicIsize::new(delta.unwrap_or(UNMAPPED)))
            .collect()
    }

    /// Returns the deltas of a [`table`](Deltas::table), which is never freed, so that a thread
    /// that overlaps finalize reads valid memory.
    pub fn of_table(table: &'static [AtomicIsize]) -> Deltas {
        Deltas(table)
    }

    /// Returns the delta of a PE; `None` if there is no such PE or it is not mapped.
    #[inline]
    pub fn of(self, pe: Pe) -> Option<isize> {
        let delta = self.0.get(pe.index())?.load(Relaxed);
        (delta != UNMAPPED).then_some(delta)
    }
}

/// Where the images of a segment of a PE are, or of a registered buffer.
#[derive(Debug)]
pub struct Images {
    /// The segment; `None` for the constants of the program, which are their own images.
    pub(super) segment: Option<Segment>,
    deltas: Deltas,
    /// Of a registered buffer that is at different offsets of the heaps: the offset on each PE, and
    /// on this one. They change as its deltas do.
    offsets: Vec<AtomicUsize>,
    own_offset: AtomicUsize,
}

impl Images {
    pub(super) const fn of_constants() -> Images {
        Images {
            segment: None,
            deltas: Deltas(&[]),
            offsets: Vec::new(),
            own_offset: AtomicUsize::new(0),
        }
    }

    /// Returns the images of a segment, which has these deltas.
    pub fn new(segment: Segment, deltas: Deltas) -> Images {
        Images {
            segment: Some(segment),
            deltas,
            ..Images::of_constants()
        }
    }

    /// Returns the images of registered buffers that are at different offsets of the `n_pes` heaps.
    /// They are kept forever.
    pub fn of_buffer(n_pes: u32) -> Images {
        let deltas = Box::leak(Deltas::table((0..n_pes).map(|_| None)));
        Images {
            offsets: (0..n_pes).map(|_| AtomicUsize::new(0)).collect(),
            ..Images::new(Segment::Heap, Deltas::of_table(deltas))
        }
    }

    /// Sets the offset of the buffer in the heap of each PE, and from it the delta to the buffer
    /// there. `me` is this PE, `heap` has the deltas to the heaps, and `offsets` has an offset for
    /// each PE.
    pub fn set_offsets(&self, me: Pe, heap: Deltas, offsets: impl Iterator<Item = usize>) {
        for (stored, offset) in self.offsets.iter().zip(offsets) {
            stored.store(offset, Relaxed);
        }
        let own = self.offsets[me.index()].load(Relaxed);
        self.own_offset.store(own, Relaxed);

        // `shift` reads the offsets stored above.
        for (pe, stored) in self.deltas.0.iter().enumerate() {
            let pe = Pe(pe as u32);
            let delta = heap.of(pe).map(|heap_delta| heap_delta + self.shift(pe));
            stored.store(delta.unwrap_or(UNMAPPED), Relaxed);
        }
    }

    /// Returns the offset of the buffer in the heap of a PE; `None` if it is the same on all.
    #[inline]
    pub(super) fn offset_on(&self, pe: Pe) -> Option<usize> {
        let offset = self.offsets.get(pe.index())?;
        Some(offset.load(Relaxed))
    }

    /// Returns true if the offsets on all PEs are equal.
    pub(super) fn are_equal(&self) -> bool {
        self.offsets.is_empty()
    }

    /// Returns how many bytes farther from the start of the heap the buffer is on `pe` than here.
    #[inline]
    pub(super) fn shift(&self, pe: Pe) -> isize {
        match self.offset_on(pe) {
            Some(there) => there.wrapping_sub(self.own_offset.load(Relaxed)) as isize,
            None => 0,
        }
    }

    /// Returns the deltas.
    pub fn deltas(&self) -> Deltas {
        self.deltas
    }

    /// Returns the distance of the image on `pe`, if it is mapped here.
    #[inline]
    pub(super) fn delta(&self, pe: Pe) -> Option<isize> {
        match self.segment {
            Some(_) => self.deltas.of(pe),
            None => Some(0),
        }
    }
}
