//! Access to the flags and words of the internal areas: those of this PE, of its mapped peers, and
//! through the network.
//!
//! A release store pairs with an acquire load, and then the doorbell of the reader's PE is rung.
//! `memory::areas` knows where in an area something is.
#![allow(unsafe_code)]

use crate::call::warning;
use crate::job::digest_of_text;
use crate::memory::address;
use crate::memory::areas::Areas;
use crate::memory::primitive::AtomicU32;
use crate::memory::range::SymmetricRange;
use crate::net::doorbell::Doorbell;
use crate::net::endpoints;
use crate::observers;
use rushmem_explain::writes::RING_BYTES;
use rushmem_heap::NodeMemory;
use rushmem_transport::{
    AmoOp, Completion, Follows, LocalBuf, Pe, Put, RemoteAddr, Segment, SignalUpdate, mem,
};
use rustix::thread::futex;
use std::mem::MaybeUninit;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering, fence};

static AREA: OnceLock<FlagArea> = OnceLock::new();

/// Returns the areas of the job; they exist from the first init on.
#[inline]
pub(crate) fn area() -> &'static FlagArea {
    AREA.get().expect("the first init sets it before it communicates")
}

/// Set by the first init.
pub(crate) fn set(area: FlagArea) {
    // A later init of the process has the same one.
    let _ = AREA.set(area);
    warning::set_is_first(is_first_warning);
}

/// Returns true if no PE of this node has given this warning. The node remembers two.
fn is_first_warning(text: &str) -> bool {
    let area = area();
    let n_pes = area.areas.n_pes() as u32;
    area.is_first_digest(area.first_of_node(n_pes), area.areas.warnings(), digest_of_text(text))
}

/// Wakes sleepers of this PE: a transport has changed its memory.
pub(crate) fn ring_own() {
    if let Some(area) = AREA.get() {
        area.own_bell().ring(wake);
    }
}

/// The internal areas of this PE and of its mapped peers.
#[derive(Debug)]
pub(crate) struct FlagArea {
    areas: Areas,
    base: *mut u8,
    nbytes: usize,
}

// SAFETY: it is an address range that stays mapped, accessed by atomics and raw copies alone.
unsafe impl Send for FlagArea {}
// SAFETY: any thread accesses the range by atomics and raw copies alone.
unsafe impl Sync for FlagArea {}

impl FlagArea {
    /// Returns the areas in `memory`, which stays mapped for the life of the process.
    pub(crate) fn new(memory: &'static NodeMemory, areas: Areas) -> Self {
        let nbytes = memory.layout().internal_bytes();
        assert!(areas.nbytes() <= nbytes, "the internal area is too small");
        FlagArea { areas, base: memory.internal(), nbytes }
    }

    pub(crate) fn areas(&self) -> &Areas {
        &self.areas
    }

    /// Writes a flag of `pe`, after everything that was written before, and wakes PEs that wait for
    /// it.
    #[inline]
    pub(crate) fn raise(&self, pe: Pe, at: usize, value: u64) {
        if self.raise_unrung(pe, at, value) {
            self.ring(pe);
        }
    }

    /// Writes a flag of `pe`, after everything that was written before. Whether the caller still
    /// has to [ring](FlagArea::ring) before it waits for long.
    #[inline]
    pub(crate) fn raise_unrung(&self, pe: Pe, at: usize, value: u64) -> bool {
        match self.delta(pe) {
            Some(delta) => {
                self.word(delta, at).store(value, Ordering::Release);
                true
            }
            None => {
                signal_remote(pe, flag(at, value));
                false
            }
        }
    }

    /// Adds one to the word `at` of `pe`, or, if the network does it, to the word `by_network`,
    /// after everything that was written before, and wakes PEs that wait for it.
    pub(crate) fn count(&self, pe: Pe, at: usize, by_network: usize) {
        match self.delta(pe) {
            Some(delta) => {
                self.word(delta, at).fetch_add(1, Ordering::Release);
                self.doorbell(delta).ring(wake);
            }
            None => signal_remote(pe, one_more(by_network)),
        }
    }

    /// Copies `source` to `dest` on `pe`, then [`count`](FlagArea::count) there.
    pub(crate) fn put_and_count(
        &self,
        pe: Pe,
        (source, dest): (SymmetricRange, SymmetricRange),
        at: usize,
        by_network: usize,
    ) {
        if self.delta(pe).is_some() || source.nbytes() == 0 {
            source.copy_to(pe, dest);
            self.count(pe, at, by_network);
        } else {
            put_signal_remote(pe, (source, dest), one_more(by_network));
        }
    }

    /// Copies `source` to `dest` on `pe`, then does as [`raise_unrung`](FlagArea::raise_unrung)
    /// with a flag there.
    #[inline]
    pub(crate) fn put_and_raise_unrung(
        &self,
        pe: Pe,
        (source, dest): (SymmetricRange, SymmetricRange),
        at: usize,
        value: u64,
    ) -> bool {
        if self.delta(pe).is_some() || source.nbytes() == 0 {
            source.copy_to(pe, dest);
            self.raise_unrung(pe, at, value)
        } else {
            put_signal_remote(pe, (source, dest), flag(at, value));
            false
        }
    }

    /// Counts this PE in at the counter of the mapped `pe`; whether it is the last of `n`, after
    /// which the counter has its former value.
    pub(crate) fn count_in(&self, pe: Pe, at: usize, n: u32) -> bool {
        let counter = self.word(self.mapped(pe), at);
        // The last PE sees what all others wrote before, and the others learn from it.
        let is_last = counter.fetch_add(1, Ordering::AcqRel) + 1 == u64::from(n);
        if is_last {
            counter.store(0, Ordering::Relaxed);
        }
        is_last
    }

    /// Returns the first PE of the node, which has the words that its PEs share.
    pub(crate) fn first_of_node(&self, n_pes: u32) -> Pe {
        let first = (0..n_pes).map(Pe).find(|pe| self.is_mapped(*pe));
        first.expect("a PE has its own area")
    }

    /// Counts this PE at a word of the mapped `pe`. Returns false if another one was there before.
    pub(crate) fn is_first_at(&self, pe: Pe, at: usize) -> bool {
        self.word(self.mapped(pe), at).fetch_add(1, Ordering::AcqRel) == 0
    }

    /// Records a digest in one of two words of the mapped `pe`. Returns false if one has it.
    fn is_first_digest(&self, pe: Pe, words: [usize; 2], digest: u64) -> bool {
        let record = |at| {
            let word = self.word(self.mapped(pe), at);
            word.compare_exchange(0, digest, Ordering::AcqRel, Ordering::Acquire)
        };
        for at in words {
            match record(at) {
                Ok(_) => return true,
                Err(other) if other == digest => return false,
                Err(_) => {}
            }
        }
        true
    }

    /// Writes a flag of the mapped `pe`, after everything that was written before; wakes no thread.
    pub(crate) fn release(&self, pe: Pe, at: usize, value: u64) {
        self.word(self.mapped(pe), at).store(value, Ordering::Release);
    }

    /// Reads a flag of the mapped `pe`; what its writer wrote before is visible afterwards.
    #[inline]
    pub(crate) fn flag_of(&self, pe: Pe, at: usize) -> u64 {
        self.word(self.mapped(pe), at).load(Ordering::Acquire)
    }

    fn mapped(&self, pe: Pe) -> isize {
        self.delta(pe).expect("a counter is used by PEs that share memory")
    }

    /// Wakes sleepers of `pe`, after a word was changed for which they may wait. If `pe` is not
    /// mapped, the transport does so itself.
    #[inline]
    pub(crate) fn ring(&self, pe: Pe) {
        if let Some(delta) = self.delta(pe) {
            self.doorbell(delta).ring(wake);
        }
    }

    /// Reads an own flag; what its writer wrote before is visible afterwards.
    #[inline]
    pub(crate) fn flag(&self, at: usize) -> u64 {
        self.own_word(at).load(Ordering::Acquire)
    }

    /// Writes words of `pe`'s area that a flag will announce.
    pub(crate) fn write(&self, pe: Pe, at: usize, words: &[u64]) {
        match self.delta(pe) {
            Some(delta) => {
                for (i, &word) in words.iter().enumerate() {
                    self.word(delta, at + i * 8).store(word, Ordering::Relaxed);
                }
            }
            None => endpoints::on_library(|endpoint| {
                let source = LocalBuf::source(words.as_ptr().cast(), size_of_val(words));
                let put = Put { dest: remote(at), source, completion: Completion::Now };
                // SAFETY: the words are there during the call.
                unsafe { endpoint.put(pe, put) }
            }),
        }
    }

    /// Reads own words that a flag announced.
    pub(crate) fn read(&self, at: usize, words: &mut [u64]) {
        for (i, word) in words.iter_mut().enumerate() {
            *word = self.own_word(at + i * 8).load(Ordering::Relaxed);
        }
    }

    /// Returns the word `at` of each of `pes`, which they have shown.
    pub(crate) fn shown(&self, pes: impl Iterator<Item = Pe>, at: usize) -> Vec<u64> {
        let pes: Vec<Pe> = pes.collect();
        let apart: Vec<Pe> = pes.iter().copied().filter(|pe| self.delta(*pe).is_none()).collect();
        let mut fetched = vec![MaybeUninit::uninit(); apart.len() * 8];
        self.range(at, 8).fetch(&apart, &mut fetched);
        let mut fetched = fetched.chunks_exact(8).map(|bytes| {
            // SAFETY: the bytes were just fetched.
            u64::from_ne_bytes(std::array::from_fn(|i| unsafe { bytes[i].assume_init() }))
        });
        let word = |pe: &Pe| match self.delta(*pe) {
            Some(delta) => self.word(delta, at).load(Ordering::Relaxed),
            None => fetched.next().expect("one for each PE"),
        };
        pes.iter().map(word).collect()
    }

    /// Returns true if the area of `pe` is mapped here.
    pub(crate) fn is_mapped(&self, pe: Pe) -> bool {
        self.delta(pe).is_some()
    }

    /// Returns a copy of `nbytes` bytes of `pe`'s area, which it may be writing.
    pub(crate) fn bytes_of(&self, pe: Pe, at: usize, nbytes: usize) -> Vec<u8> {
        let mut bytes = vec![0u8; nbytes];
        match self.delta(pe) {
            Some(delta) => {
                let (to, from) = (bytes.as_mut_ptr(), self.own(at, nbytes).wrapping_offset(delta));
                // SAFETY: in the area of a mapped peer, and as many private bytes.
                unsafe { mem::copy_bytes::<mem::AtomicLoads>(to, from, nbytes) };
            }
            None => {
                let mut fetched = vec![MaybeUninit::uninit(); nbytes];
                self.range(at, nbytes).fetch(&[pe], &mut fetched);
                for (byte, fetched) in bytes.iter_mut().zip(fetched) {
                    // SAFETY: the bytes were just fetched.
                    *byte = unsafe { fetched.assume_init() };
                }
            }
        }
        bytes
    }

    /// Sleeps until `ready`, which reads own flags. `sleep` returns when the word no longer has the
    /// given value, or at any time before.
    pub(crate) fn sleep_until(
        &self,
        ready: impl FnMut() -> bool,
        sleep: impl FnMut(&AtomicU32, u32),
    ) {
        self.own_bell().sleep_until(ready, sleep);
    }

    /// Writes the status of this PE, from its second word on; the first one shows that it is being
    /// written.
    pub(crate) fn write_status(&self, words: &[u64]) {
        let at = self.areas.status();
        let sequence = self.own_word(at);
        let before = sequence.load(Ordering::Relaxed);
        sequence.store(before + 1, Ordering::Relaxed);
        fence(Ordering::Release);
        self.write_own(at + 8, words);
        sequence.store(before + 2, Ordering::Release);
    }

    /// Returns the ring of the last writes of this PE (`rushmem_explain::writes`).
    pub(crate) fn writes(&self) -> &'static [AtomicU64] {
        let start = self.own(self.areas.writes(), RING_BYTES).cast();
        // SAFETY: in the area and aligned to a line; areas stay mapped, and all access these words
        // atomically.
        unsafe { std::slice::from_raw_parts(start, RING_BYTES / size_of::<u64>()) }
    }

    /// Returns the range of `nbytes` own bytes, for data.
    pub(crate) fn range(&self, at: usize, nbytes: usize) -> SymmetricRange {
        // SAFETY: in the internal area, as `own` makes sure of.
        unsafe { SymmetricRange::new(Segment::Internal, at, self.own(at, nbytes), nbytes) }
    }

    /// Writes own words that a plan sends on.
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
        address::delta(Segment::Internal, pe.0 as i32)
    }

    fn own_word(&self, at: usize) -> &AtomicU64 {
        // SAFETY: in the area and aligned, as `at_word` makes sure of; areas stay mapped.
        unsafe { AtomicU64::from_ptr(self.at_word(at, 0).cast()) }
    }

    fn word(&self, delta: isize, at: usize) -> &AtomicU64 {
        // SAFETY: in the area of a mapped peer and aligned, as `at_word` makes sure of.
        unsafe { AtomicU64::from_ptr(self.at_word(at, delta).cast()) }
    }

    fn own_bell(&self) -> Doorbell<'_> {
        self.doorbell(0)
    }

    fn doorbell(&self, delta: isize) -> Doorbell<'_> {
        let words: *mut u32 = self.at_word(0, delta).cast();
        // SAFETY: the first 8 bytes of an area are its doorbell: two aligned words that stay
        // mapped.
        let rings = unsafe { AtomicU32::from_ptr(words) };
        // SAFETY: the second of the doorbell's two words.
        let sleepers = unsafe { AtomicU32::from_ptr(words.wrapping_add(1)) };
        Doorbell { rings, sleepers }
    }

    fn at_word(&self, at: usize, delta: isize) -> *mut u8 {
        assert!(at.is_multiple_of(8), "a word is aligned");
        self.own(at, 8).wrapping_offset(delta)
    }
}

/// Wakes all that sleep on a word.
pub(crate) fn wake(word: &AtomicU32) {
    // A failed wake-up means that the address is not mapped, which `word` proves it is.
    let _ = futex::wake(word, futex::Flags::empty(), u32::MAX >> 1);
}

#[cold]
fn put_signal_remote(
    pe: Pe,
    (source, dest): (SymmetricRange, SymmetricRange),
    signal: SignalUpdate,
) {
    let nbytes = source.nbytes();
    assert!(nbytes <= dest.nbytes(), "{nbytes} bytes into {}", dest.nbytes());
    observers::moved_to(pe.index(), nbytes);
    let source = LocalBuf::source(source.start(), nbytes);
    let put = Put { dest: dest.remote(0), source, completion: Completion::Now };
    // SAFETY: memory of this PE that stays as it is during the call.
    endpoints::on_library(|endpoint| unsafe { endpoint.put_signal(pe, put, signal) });
}

#[cold]
fn signal_remote(pe: Pe, signal: SignalUpdate) {
    let put = Put { dest: signal.dest, source: LocalBuf::EMPTY, completion: Completion::Now };
    // SAFETY: there are no data.
    endpoints::on_library(|endpoint| unsafe { endpoint.put_signal(pe, put, signal) });
}

/// Returns what a network does to a flag, which only grows: so an earlier value must not come
/// later.
fn flag(at: usize, value: u64) -> SignalUpdate {
    SignalUpdate { dest: remote(at), op: AmoOp::Set, value, follows: Follows::All }
}

/// Returns what a network does to a counter.
fn one_more(at: usize) -> SignalUpdate {
    SignalUpdate { op: AmoOp::Add, ..flag(at, 1) }
}

fn remote(at: usize) -> RemoteAddr {
    RemoteAddr { segment: Segment::Internal, offset: at as u64 }
}
