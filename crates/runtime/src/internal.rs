//! The library's own symmetric area: who has which bytes of it, and safe access to them.
//!
//! Every PE's area is laid out alike:
//!
//! ```text
//! bell | mailbox, acknowledgement, probe per source PE | slot per team: flags, counts, landings |
//! two landings per source PE, for active sets
//! ```
//!
//! Flags are words of 8 bytes in a cache line of their own that one PE writes and one reads. A
//! release store pairs with an acquire load; the bell of the reader's PE is rung after it. Pages that
//! no team uses are never touched, so the area costs address space, not memory.

use crate::bell::Bell;
use crate::network;
use crate::primitive::AtomicU32;
use crate::range::Range;
use rushmem_heap::NodeMemory;
use rushmem_transport::{AmoOp, Completion, LocalBuf, Pe, Put, RemoteAddr, Segment, Signal};
use rustix::thread::futex;
use std::sync::atomic::{AtomicU64, Ordering};

/// A cache line; flags of different writers never share one.
const LINE: usize = 64;
/// Teams that can exist at once on a PE.
pub(crate) const TEAM_SLOTS: usize = 1024;
/// Bytes of one landing buffer: what a reduction combines at a time.
pub(crate) const LANDING: usize = 8 << 10;
/// Words of a mailbox message.
pub(crate) const MESSAGE: usize = 6;

/// Where things are in an internal area; offsets in bytes from its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Areas {
    n_pes: usize,
    all_reduce_landings: usize,
    slot_bytes: usize,
    slots: usize,
}

impl Areas {
    pub(crate) fn new(n_pes: u32) -> Areas {
        let all_reduce_landings = rushmem_collectives::landing::all_reduce(n_pes).len();
        let scan_landings = rushmem_collectives::landing::scan(n_pes).len();
        let n_pes = n_pes as usize;
        let counts = (2 * n_pes * 8).next_multiple_of(LINE);
        let landings = (2 * all_reduce_landings + scan_landings) * LANDING;
        Areas {
            n_pes,
            all_reduce_landings,
            slot_bytes: (n_pes * LINE + counts + landings).next_multiple_of(4096),
            slots: (LINE + n_pes * 3 * LINE).next_multiple_of(4096),
        }
    }

    /// Bytes of the whole area.
    pub(crate) fn nbytes(&self) -> usize {
        self.pair_landing(Pe(self.n_pes as u32), 0)
    }

    /// The mailbox into which `source` writes: a sequence number, a tag, the message.
    pub(crate) fn mailbox(&self, source: Pe) -> usize {
        LINE + source.index() * LINE
    }

    /// Where `dest` says how many of this PE's messages it took.
    pub(crate) fn acknowledged(&self, dest: Pe) -> usize {
        LINE + (self.n_pes + dest.index()) * LINE
    }

    /// Where `source` tries out a transport.
    pub(crate) fn probe(&self, source: Pe) -> usize {
        LINE + (2 * self.n_pes + source.index()) * LINE
    }

    /// The flag that member `source` of the team in `slot` writes.
    pub(crate) fn flag(&self, slot: u16, source: u32) -> usize {
        self.slot(slot) + source as usize * LINE
    }

    /// How many broadcasts member `source` has entered in which this PE writes to it. It shares the line of
    /// the flag, whose writer and reader are the same.
    pub(crate) fn entered(&self, slot: u16, source: u32) -> usize {
        self.flag(slot, source) + 8
    }

    /// A landing buffer into which the PE `source` alone writes. There are two, by parity.
    pub(crate) fn pair_landing(&self, source: Pe, parity: usize) -> usize {
        self.slots + TEAM_SLOTS * self.slot_bytes + (2 * source.index() + parity) * LANDING
    }

    /// A table of one 8-byte count per member; there are two, by parity.
    pub(crate) fn counts(&self, slot: u16, parity: usize) -> usize {
        self.slot(slot) + self.n_pes * LINE + parity * self.n_pes * 8
    }

    /// A landing buffer. Those of all-reduce exist twice, by parity.
    pub(crate) fn landing(&self, slot: u16, landing: u8, parity: usize) -> usize {
        use rushmem_collectives::landing::{ALL_REDUCE, SCAN};
        let index = if ALL_REDUCE.contains(&landing) {
            parity * self.all_reduce_landings + landing as usize
        } else {
            2 * self.all_reduce_landings + (landing - SCAN.start) as usize
        };
        let counts = (2 * self.n_pes * 8).next_multiple_of(LINE);
        self.slot(slot) + self.n_pes * LINE + counts + index * LANDING
    }

    fn slot(&self, slot: u16) -> usize {
        self.slots + slot as usize * self.slot_bytes
    }
}

/// The internal areas of this PE and of its mapped peers.
#[derive(Debug)]
pub(crate) struct Internal {
    areas: Areas,
    base: *mut u8,
    nbytes: usize,
    deltas: Vec<Option<isize>>,
}

// SAFETY: it is an address range that stays mapped, accessed by atomics and raw copies alone.
unsafe impl Send for Internal {}
// SAFETY: as above.
unsafe impl Sync for Internal {}

impl Internal {
    /// The areas in `memory`, which stays mapped for the life of the process.
    pub(crate) fn new(memory: &'static NodeMemory, areas: Areas, deltas: &[Option<isize>]) -> Self {
        let nbytes = memory.layout().internal_bytes;
        assert!(areas.nbytes() <= nbytes, "the internal area is too small");
        Internal { areas, base: memory.internal(), nbytes, deltas: deltas.to_vec() }
    }

    pub(crate) fn areas(&self) -> &Areas {
        &self.areas
    }

    /// Write a flag of `pe`, after everything that was written before, and wake who waits for it.
    #[inline]
    pub(crate) fn raise(&self, pe: Pe, at: usize, value: u64) {
        match self.delta(pe) {
            Some(delta) => {
                self.word(delta, at).store(value, Ordering::Release);
                self.bell(delta).ring(wake);
            }
            None => self.raise_remote(pe, at, value),
        }
    }

    #[cold]
    fn raise_remote(&self, pe: Pe, at: usize, value: u64) {
        let flag = Signal { dest: remote(at), op: AmoOp::Set, value };
        network::on_library(|endpoint| {
            endpoint.fence()?;
            // SAFETY: the old value goes nowhere.
            unsafe { endpoint.amo(pe, flag.amo()) }
        });
    }

    /// Wake who sleeps on `pe`, after a word was changed that it may wait for. Elsewhere the transport
    /// does so itself.
    #[inline]
    pub(crate) fn ring(&self, pe: Pe) {
        if let Some(delta) = self.delta(pe) {
            self.bell(delta).ring(wake);
        }
    }

    /// Wake who sleeps on this PE: a transport changed its memory.
    pub(crate) fn ring_own(&self) {
        self.own_bell().ring(wake);
    }

    /// Read an own flag; what its writer wrote before is visible afterwards.
    #[inline]
    pub(crate) fn flag(&self, at: usize) -> u64 {
        self.own_word(at).load(Ordering::Acquire)
    }

    /// Write words of `pe`'s area that a flag will announce.
    pub(crate) fn write(&self, pe: Pe, at: usize, words: &[u64]) {
        match self.delta(pe) {
            Some(delta) => {
                for (i, &word) in words.iter().enumerate() {
                    self.word(delta, at + i * 8).store(word, Ordering::Relaxed);
                }
            }
            None => network::on_library(|endpoint| {
                let source = LocalBuf::source(words.as_ptr().cast(), size_of_val(words));
                let put = Put { dest: remote(at), source, completion: Completion::Now };
                // SAFETY: the words are there during the call.
                unsafe { endpoint.put(pe, put) }
            }),
        }
    }

    /// Read own words that a flag announced.
    pub(crate) fn read(&self, at: usize, words: &mut [u64]) {
        for (i, word) in words.iter_mut().enumerate() {
            *word = self.own_word(at + i * 8).load(Ordering::Relaxed);
        }
    }

    /// Sleep until `ready`, which looks at own flags.
    pub(crate) fn sleep_until(&self, ready: impl FnMut() -> bool) {
        self.own_bell().sleep_until(ready, |word, heard| {
            // Interrupted, changed meanwhile: either way the caller looks again.
            let _ = futex::wait(word, futex::Flags::empty(), heard, None);
        });
    }

    /// `nbytes` own bytes, for data.
    pub(crate) fn range(&self, at: usize, nbytes: usize) -> Range {
        // SAFETY: in the internal area, as `own` makes sure of.
        unsafe { Range::new(Segment::Internal, at, self.own(at, nbytes), nbytes) }
    }

    /// Write own words that a plan sends on.
    pub(crate) fn write_own(&self, at: usize, words: &[u64]) {
        for (i, &word) in words.iter().enumerate() {
            self.own_word(at + i * 8).store(word, Ordering::Relaxed);
        }
    }

    fn own(&self, at: usize, nbytes: usize) -> *mut u8 {
        assert!(at + nbytes <= self.nbytes, "beyond the internal area");
        self.base.wrapping_add(at)
    }

    fn delta(&self, pe: Pe) -> Option<isize> {
        self.deltas[pe.index()]
    }

    fn own_word(&self, at: usize) -> &AtomicU64 {
        // SAFETY: in the area and aligned, as `at_word` makes sure of; areas stay mapped.
        unsafe { AtomicU64::from_ptr(self.at_word(at, 0).cast()) }
    }

    fn word(&self, delta: isize, at: usize) -> &AtomicU64 {
        // SAFETY: as above, in the area of a mapped peer.
        unsafe { AtomicU64::from_ptr(self.at_word(at, delta).cast()) }
    }

    fn own_bell(&self) -> Bell<'_> {
        self.bell(0)
    }

    fn bell(&self, delta: isize) -> Bell<'_> {
        let words: *mut u32 = self.at_word(0, delta).cast();
        // SAFETY: the first 8 bytes of an area are its bell: two aligned words that stay mapped.
        let rings = unsafe { AtomicU32::from_ptr(words) };
        // SAFETY: as above.
        let sleepers = unsafe { AtomicU32::from_ptr(words.wrapping_add(1)) };
        Bell { rings, sleepers }
    }

    fn at_word(&self, at: usize, delta: isize) -> *mut u8 {
        assert!(at.is_multiple_of(8), "a word is aligned");
        self.own(at, 8).wrapping_offset(delta)
    }
}

fn wake(word: &AtomicU32) {
    // A failed wake-up means that the address is not mapped, which `word` proves it is.
    let _ = futex::wake(word, futex::Flags::empty(), u32::MAX >> 1);
}

fn remote(at: usize) -> RemoteAddr {
    RemoteAddr { segment: Segment::Internal, offset: at as u64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_overlaps() {
        for n in [1u32, 2, 3, 64, 512] {
            let a = Areas::new(n);
            let mut ends = vec![(0, LINE)];
            ends.extend((0..n).map(|p| (a.mailbox(Pe(p)), LINE)));
            ends.extend((0..n).map(|p| (a.acknowledged(Pe(p)), LINE)));
            ends.extend((0..n).map(|p| (a.probe(Pe(p)), LINE)));
            for slot in [0, 1, TEAM_SLOTS as u16 - 1] {
                ends.extend((0..n).map(|p| (a.flag(slot, p), LINE)));
                ends.extend((0..2).map(|parity| (a.counts(slot, parity), n as usize * 8)));
                for parity in 0..2 {
                    for k in rushmem_collectives::landing::all_reduce(n) {
                        ends.push((a.landing(slot, k, parity), LANDING));
                    }
                }
                for k in rushmem_collectives::landing::scan(n) {
                    ends.push((a.landing(slot, k, 0), LANDING));
                }
            }
            for parity in 0..2 {
                ends.extend((0..n).map(|p| (a.pair_landing(Pe(p), parity), LANDING)));
            }
            ends.sort();
            for pair in ends.windows(2) {
                assert!(pair[0].0 + pair[0].1 <= pair[1].0, "{pair:?} for {n} PEs");
            }
            let (last, length) = ends[ends.len() - 1];
            assert!(last + length <= a.nbytes());
        }
    }
}
